import Foundation
import Logging
import Platform
import Synchronization
import TestSupport
import Testing
import TransportContract

@testable import APNs

/// A request that the layer below has taken and not written yet when its push may not start any more: libcurl keeps it
/// until there is a connection, or a stream on one, and nghttp2 until the peer's window lets its body through.
@Suite(.timeLimit(.minutes(10))) struct `What has not left the machine` {
    /// Why it may not start any more.
    enum Reason: CaseIterable {
        /// A pause, a cancel, a stop.
        case gateClosed
        /// Its lease, its wave or its push itself is past its last moment.
        case expired
    }

    /// What the server sees and the test decides.
    private final class Scene: Sendable {
        let gate = StartGate(openUntil: BootClock.never)
        let reason: Reason
        private let seconds: UInt64
        private let last = Mutex(UInt64(0))
        /// Streams of requests that came whole.
        let requests = Mutex<[Int32]>([])

        /// - Parameter seconds: until it expires.
        init(_ reason: Reason, seconds: UInt64 = 1) {
            self.reason = reason
            self.seconds = seconds
        }

        func batch(_ numbers: Range<Int>) -> PushBatch {
            var batch = LaneScene.batch(numbers)
            batch.gate = gate
            if reason == .expired { batch.startBefore = BootClock.now() + seconds * 1_000_000_000 }
            last.withLock { $0 = batch.startBefore }
            return batch
        }

        /// Returns when nothing may start any more.
        func end() {
            switch reason {
            case .gateClosed: gate.close()
            case .expired: while BootClock.now() < last.withLock({ $0 }) { usleep(1_000) }
            }
        }

        /// Notes the next whole request.
        func request(_ connection: ScriptedConnection) throws -> Int32 {
            let stream = try connection.request()
            requests.withLock { $0.append(stream) }
            return stream
        }
    }

    private func lane(_ kind: TransportKind, to server: ScriptedServer) throws -> any Lane {
        var limits = LaneLimits()
        limits.requestDeadline = .seconds(60)
        let key = try SigningKey(pem: try SigningKey.generatedPEM())
        let source = ProviderTokenSource(key: key, teamID: "DEF123GHIJ", keyID: "ABC123DEFG", now: { 0 })
        return kind.make(.token(source), limits, server.authorityPath)
            .lane(to: PushEndpoint(host: "127.0.0.1", port: server.port), named: "lane")
    }

    @Test(arguments: TransportKind.all, Reason.allCases)
    func `stays here when it waited for its connection`(kind: TransportKind, reason: Reason) async throws {
        let scene = Scene(reason)
        var options = ScriptedServer.Options()
        options.beforeTLS = { scene.end() }
        let server = try ScriptedServer(options) { connection in
            try connection.write(.settings((3, 100)))
            while true { try connection.write(.status(200, on: try scene.request(connection))) }
        }
        let run = await LaneRun.of(try lane(kind, to: server), scene.batch(0..<5))
        // Now it has read everything.
        server.stop()
        #expect(scene.requests.withLock { $0 }.isEmpty)
        #expect(run.isComplete(0..<5) && run.count { $0 == .notSent(.stopped) } == 5)
    }

    @Test(arguments: TransportKind.all)
    func `stays here when it waited for a stream`(kind: TransportKind) async throws {
        let scene = Scene(.gateClosed)
        let server = try ScriptedServer { connection in
            try connection.write(.settings((3, 1)))
            while true {
                let stream = try scene.request(connection)
                // The first one shows that the connection works; behind the second the others wait.
                if scene.requests.withLock({ $0.count }) == 2 { scene.end() }
                try connection.write(.status(200, on: stream))
            }
        }
        let run = await LaneRun.of(try lane(kind, to: server), scene.batch(0..<20))
        // Now it has read everything.
        server.stop()
        #expect(scene.requests.withLock { $0.count } == 2)
        #expect(run.isComplete(0..<20) && run.acceptedCount == 2)
        #expect(run.count { $0 == .notSent(.stopped) } == 18)
    }

    /// libcurl is asked before a request's first byte alone.
    @Test(arguments: [UInt32(0), 10], Reason.allCases)
    func `natively stays here when its body waited, whole or with all but its first bytes`(
        window: UInt32, reason: Reason
    ) async throws {
        // A machine may be too busy to come as far as the server within a second.
        for seconds: UInt64 in [1, 8, 40] {
            if try await hasWaited(Scene(reason, seconds: seconds), window) { return }
        }
        Issue.record("no request came as far as its body")
    }

    /// False: nothing came to the server in time.
    private func hasWaited(_ scene: Scene, _ window: UInt32) async throws -> Bool {
        let arrivals = Mutex(0)
        let resets = Mutex(0)
        let server = try ScriptedServer { connection in
            try connection.write(.settings((4, window)), .settingsAcknowledged)
            let stream = try connection.frame(.headers).stream
            if window > 0 { _ = try connection.frame(.data) }
            arrivals.withLock { $0 += 1 }
            scene.end()
            try connection.write(Frame(.windowUpdate, stream: stream, [0, 0, 16, 0]))
            while true {
                let next = try connection.frame()
                if next.type == Frame.Kind.reset.rawValue { resets.withLock { $0 += 1 } }
                if next.type == Frame.Kind.data.rawValue { scene.requests.withLock { $0.append(next.stream) } }
            }
        }
        let run = await LaneRun.of(try lane(.native, to: server), scene.batch(0..<1))
        // Now it has read everything.
        server.stop()
        #expect(scene.requests.withLock { $0 }.isEmpty && resets.withLock { $0 } == arrivals.withLock { $0 })
        #expect(run.isComplete(0..<1) && run.result(0) == .notSent(.stopped))
        return arrivals.withLock { $0 } > 0
    }

    /// Nobody could say meanwhile whether its run goes on; then somebody does.
    @Test func `natively leaves after all once it may start again`() async throws {
        let scene = Scene(.gateClosed)
        let server = try ScriptedServer { connection in
            try connection.write(.settings((4, 0)), .settingsAcknowledged)
            let first = try connection.frame(.headers).stream
            scene.gate.lapse()
            try connection.write(Frame(.windowUpdate, stream: first, [0, 0, 16, 0]))
            _ = try connection.frame(.reset)
            scene.gate.open(until: BootClock.never)
            let second = try connection.frame(.headers).stream
            try connection.write(Frame(.windowUpdate, stream: second, [0, 0, 16, 0]))
            try connection.write(.status(200, on: try scene.request(connection)))
            try connection.readToEnd()
        }
        let run = await LaneRun.of(try lane(.native, to: server), scene.batch(0..<1))
        // Now it has read everything.
        server.stop()
        #expect(scene.requests.withLock { $0 } == [3] && server.faults.isEmpty)
        #expect(run.isComplete(0..<1) && run.acceptedCount == 1)
    }
}
