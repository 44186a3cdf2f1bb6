import APNsSimulator
import Foundation
import Logging
import Synchronization
import TestSupport
import Testing
import TransportContract

@testable import APNs
@testable import HTTP2

/// A process that is stopped for longer than a request may take, with all answers in its socket when it continues.
@Suite(.timeLimit(.minutes(10))) struct `After a pause of the process` {
    /// A clock that stops the thread which reads it, as SIGSTOP does.
    private final class StoppedClock: Sendable {
        private struct State {
            var isArmed = false
            var passed: UInt64 = 0
        }

        private let state = Mutex(State())
        private let stopped = DispatchSemaphore(value: 0)
        private let resumed = DispatchSemaphore(value: 0)

        /// A lane that reads the clock no more, or a script that has failed, is not waited for.
        private struct Overdue: Error {}
        private static let seconds = 50.0

        /// On the lane's thread.
        func reading() -> UInt64 {
            let isStopping = state.withLock { state in
                defer { state.isArmed = false }
                return state.isArmed
            }
            if isStopping {
                stopped.signal()
                _ = resumed.wait(timeout: .now() + Self.seconds)
            }
            return state.withLock { EventLoop.monotonicNanoseconds() + $0.passed }
        }

        /// Stops the lane for this time; meanwhile the others do `body`.
        func pause(for duration: Duration, _ body: () throws -> Void) throws {
            state.withLock { $0.isArmed = true }
            guard stopped.wait(timeout: .now() + Self.seconds) == .success else { throw Overdue() }
            defer { resumed.signal() }
            state.withLock { $0.passed += duration.nanoseconds }
            try body()
        }
    }

    private static let pushes = 40

    private func lane(
        _ kind: TransportKind, to server: ScriptedServer, _ clock: StoppedClock, _ change: (inout LaneLimits) -> Void
    ) throws -> any Lane {
        let key = try SigningKey(pem: try SigningKey.generatedPEM())
        let source = ProviderTokenSource(key: key, teamID: "DEF123GHIJ", keyID: "ABC123DEFG", now: { 0 })
        var limits = LaneLimits()
        change(&limits)
        var plan = LanePlan(
            name: "lane", endpoint: PushEndpoint(host: "127.0.0.1", port: server.port), credential: .token(source),
            limits: limits, trust: server.authorityPath, logger: Logger(label: "lane"), backOff: .connecting)
        plan.monotonic = { clock.reading() }
        let settings = NativeClientSettings(credential: plan.credential, trust: plan.trust, firstStream: 1)
        return ThreadLane(plan: plan) { plan, mailbox, wakeup in
            kind.knowsStreams
                ? LaneDriver<NativeConnection>.run(plan, settings, mailbox, wakeup)
                : LaneDriver<CurlConnection>.run(plan, (), mailbox, wakeup)
        }
    }

    /// Whether the answers come before the lane continues, or only when it reads again.
    enum Answers: CaseIterable {
        case meanwhile, behind
    }

    @Test(arguments: TransportKind.all, Answers.allCases)
    func `what was in flight is answered, and nothing is sent twice`(
        kind: TransportKind, answers: Answers
    ) async throws {
        let clock = StoppedClock()
        let requests = Mutex(0)
        let server = try ScriptedServer { connection in
            try connection.write(.settings((3, 100)))
            try connection.write(.status(200, on: try connection.request()))
            let streams = try (1..<Self.pushes).map { _ in try connection.request() }
            requests.withLock { $0 += Self.pushes }
            let bytes = streams.flatMap { Frame.status(200, on: $0).bytes }
            try clock.pause(for: .seconds(26)) { if answers == .meanwhile { try connection.write(bytes) } }
            if answers == .behind { try connection.write(bytes) }
            while true {
                _ = try connection.request()
                requests.withLock { $0 += 1 }
            }
        }
        let run = await LaneRun.of(try lane(kind, to: server, clock) { _ in }, LaneScene.batch(0..<Self.pushes))
        server.stop()
        #expect(requests.withLock { $0 } == Self.pushes)
        #expect(run.error == nil && run.isComplete(0..<Self.pushes) && run.acceptedCount == Self.pushes)
        #expect(server.connections == 1)
    }

    @Test(arguments: TransportKind.all)
    func `a lane that is to stop still takes the answers`(kind: TransportKind) async throws {
        let clock = StoppedClock()
        let wasCancelled = DispatchSemaphore(value: 0)
        let (whole, isWhole) = AsyncStream.makeStream(of: Void.self)
        let server = try ScriptedServer { connection in
            try connection.write(.settings((3, 100)))
            try connection.write(.status(200, on: try connection.request()))
            let streams = try (1..<Self.pushes).map { _ in try connection.request() }
            isWhole.finish()
            guard wasCancelled.wait(timeout: .now() + 50) == .success else { throw ScriptedConnection.Ended() }
            try clock.pause(for: .seconds(26)) {
                try connection.write(streams.flatMap { Frame.status(200, on: $0).bytes })
            }
            try connection.readToEnd()
        }
        let lane = try lane(kind, to: server, clock) { _ in }
        let running = Task { await LaneRun.end(of: lane) }
        #expect(await lane.send(LaneScene.batch(0..<Self.pushes)))
        for await _ in whole {}
        running.cancel()
        wasCancelled.signal()
        var run = LaneRun()
        while let completions = await lane.completions() { run.take(completions) }
        server.stop()
        #expect(await running.value == nil)
        #expect(run.acceptedCount == Self.pushes)
    }

    /// libcurl sends none.
    @Test func `a PING that was answered meanwhile ends no connection`() async throws {
        let clock = StoppedClock()
        let server = try ScriptedServer { connection in
            try connection.write(.settings((3, 100)))
            let stream = try connection.request()
            let ping = try connection.frame(.ping)
            try clock.pause(for: .seconds(26)) {
                try connection.write(Frame(.ping, flags: Frame.ack, ping.payload), .status(200, on: stream))
            }
            try connection.readToEnd()
        }
        let lane = try lane(TransportKind.all[0], to: server, clock) { $0.silencePingInterval = .milliseconds(50) }
        let run = await LaneRun.of(lane, LaneScene.batch(0..<1))
        server.stop()
        #expect(run.acceptedCount == 1 && server.connections == 1)
    }
}
