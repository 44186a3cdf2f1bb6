import APNsSimulator
import Logging
import Platform
import Synchronization
import Testing
import TransportContract

@testable import APNs
import TestSupport

/// What the native transport alone can do, and what no simulator of APNs does: a server that is driven frame by frame.
@Suite(.timeLimit(.minutes(10)))
struct NativeLaneTests {
    private static let defaults: (UInt16, UInt32) = (3, 1000)

    private func lane(
        to server: ScriptedServer, host: String = "127.0.0.1", source: ProviderTokenSource? = nil,
        firstStream: Int32 = 1, _ change: (inout LaneLimits) -> Void = { _ in }
    ) throws -> any Lane {
        var limits = LaneLimits()
        limits.requestDeadline = .seconds(60)
        change(&limits)
        let key = try SigningKey(pem: try SigningKey.generatedPEM())
        let source = source ?? ProviderTokenSource(key: key, teamID: "DEF123GHIJ", keyID: "ABC123DEFG", now: { 0 })
        return NativeTransport(
            credential: .token(source), limits: limits, trust: server.authorityPath, logger: Logger(label: "test"),
            backOff: Backoff(first: .milliseconds(1), longest: .milliseconds(1)), firstStream: firstStream
        ).lane(to: PushEndpoint(host: host, port: server.port), named: "lane")
    }

    /// Answers each request as it comes, by the frames that `answer` makes of its stream.
    private func server(
        _ settings: (UInt16, UInt32)..., answer: @escaping @Sendable (Int32) -> [Frame]
    ) throws -> ScriptedServer {
        try ScriptedServer { [settings] connection in
            try connection.write(Frame(.settings, settings.flatMap { Frame.settings($0).payload }))
            while true {
                let stream = try connection.request()
                try connection.write(answer(stream).flatMap(\.bytes))
            }
        }
    }

    @Test func `interim answers, late ends and parted, padded bodies are put together`() async throws {
        let body = Array(#"{"reason":"Unregistered","timestamp":1780000000123}"#.utf8)
        let server = try server(Self.defaults) { stream in
            switch stream {
            case 1: [.status(103, on: 1, ends: false), .status(200, on: 1, ends: false), .data([], on: 1)]
            case 3:
                [
                    .status(410, on: 3, ends: false),
                    Frame(.data, flags: 8, stream: 3, [2] + body.prefix(9) + [0, 0]),
                    .data(Array(body.dropFirst(9)), on: 3),
                ]
            default: [.status(200, on: stream)]
            }
        }
        defer { server.stop() }
        let run = await LaneRun.of(try lane(to: server), LaneScene.batch(0..<3))
        #expect(run.result(0) == .answered(PushResponse(status: 200)))
        let gone = PushResponse(status: 410, reason: .unregistered, timestamp: 1_780_000_000_123)
        #expect(run.result(1) == .answered(gone))
        #expect(run.result(2) == .answered(PushResponse(status: 200)))
    }

    @Test func `an answer that did not wait for the body counts`() async throws {
        // The window is shut: no body ever comes.
        let server = try ScriptedServer { connection in
            try connection.write(.settings((4, 0)), .settingsAcknowledged)
            let stream = try connection.frame(.headers).stream
            try connection.write(.status(413, on: stream), .reset(stream, code: 0))
            try connection.readToEnd()
        }
        defer { server.stop() }
        let run = await LaneRun.of(try lane(to: server), LaneScene.batch(0..<1))
        #expect(run.result(0) == .answered(PushResponse(status: 413)))
        #expect(server.faults.isEmpty)
    }

    @Test func `a push whose body never left is not sent`() async throws {
        let server = try server((4, 0)) { _ in [] }
        defer { server.stop() }
        let lane = try lane(to: server) { limits in
            limits.requestDeadline = .milliseconds(100)
            limits.connectAttemptsMax = 2
        }
        let run = await LaneRun.of(lane, LaneScene.batch(0..<3))
        #expect(run.isComplete(0..<3))
        #expect(run.count(where: \.isNotSent) == 3)
        #expect(run.result(0) == .notSent(.deadline))
    }

    @Test func `a server that opens no stream at all is given up`() async throws {
        let server = try server((3, 0)) { _ in [] }
        defer { server.stop() }
        let lane = try lane(to: server) { limits in
            limits.requestDeadline = .milliseconds(50)
            limits.connectAttemptsMax = 2
        }
        let run = await LaneRun.of(lane, LaneScene.batch(0..<3))
        guard case .unreachable = run.error else {
            Issue.record("\(String(describing: run.error))")
            return
        }
        #expect(run.count(where: \.isNotSent) == 3)
        #expect(server.connections == 2)
    }

    @Test func `a server that refuses every stream gets no more than a few tries`() async throws {
        let server = try server(Self.defaults) { [.reset($0, code: 7)] }
        defer { server.stop() }
        let run = await LaneRun.of(try lane(to: server) { $0.connectAttemptsMax = 2 }, LaneScene.batch(0..<20))
        #expect(run.isComplete(0..<20))
        #expect(run.count(where: \.isNotSent) == 20)
    }

    @Test func `the reason of a GOAWAY is reported`() async throws {
        let scene = try LaneScene { options in
            options.faults = [.init(when: .number(20), action: .goAway(lastStream: .this, reason: "Shutdown"))]
        }
        let lane = scene.lane(.native)
        let run = await LaneRun.of(lane, LaneScene.batch(0..<100))
        #expect(run.acceptedCount == 100)
        #expect(lane.status.goAway == "Shutdown")
        #expect(lane.status.connects == 2)
    }

    /// The lane gives up at the first failure: a connection that only ended is none once it has answered.
    @Test(arguments: [(0, 5), (2, 5), (11, 1)] as [(UInt32, Int)])
    func `ENHANCE_YOUR_CALM is a failure to pause for, any other GOAWAY after an answer is none`(
        code: UInt32, accepted: Int
    ) async throws {
        let server = try ScriptedServer { connection in
            try connection.write(.settings(Self.defaults))
            let stream = try connection.request()
            try connection.write(.status(200, on: stream), .goAway(lastStream: stream, code: code))
            try connection.readToEnd()
        }
        defer { server.stop() }
        let lane = try lane(to: server) { limits in
            limits.connectAttemptsMax = 1
            limits.reconnectAttemptsMax = 1
        }
        let run = await LaneRun.of(lane, LaneScene.batch(0..<5))
        #expect(run.acceptedCount == accepted && server.connections == accepted)
        #expect((run.error == nil) == (accepted == 5))
        #expect(run.count(where: \.isNotSent) == 5 - accepted)
    }

    @Test func `an idle connection that is dead is noticed and replaced`() async throws {
        let (left, leaving) = AsyncStream.makeStream(of: Void.self)
        let server = try ScriptedServer { connection in
            defer { leaving.yield() }
            try connection.write(.settings(Self.defaults))
            while true { try connection.write(.status(200, on: connection.request())) }
        }
        defer { server.stop() }
        let lane = try lane(to: server) { limits in
            limits.idlePingInterval = .milliseconds(20)
            limits.pingDeadline = .milliseconds(50)
        }
        async let ended = LaneRun.end(of: lane)
        #expect(await lane.send(LaneScene.batch(0..<1)))
        var run = LaneRun()
        run.take(await lane.completions() ?? [])
        // The script answers no PING.
        for await _ in left { break }
        #expect(await lane.send(LaneScene.batch(1..<2)))
        lane.finish()
        while let completions = await lane.completions() { run.take(completions) }
        #expect(await ended == nil)
        #expect(run.acceptedCount == 2)
        #expect(server.connections == 2)
    }

    @Test func `an idle connection that answers PING stays`() async throws {
        let (pinged, pinging) = AsyncStream.makeStream(of: Void.self)
        let server = try ScriptedServer { connection in
            try connection.write(.settings(Self.defaults))
            while true {
                let frame = try connection.frame()
                if frame.type == Frame.Kind.ping.rawValue {
                    try connection.write(Frame(.ping, flags: Frame.ack, frame.payload))
                    pinging.yield()
                } else if frame.type == Frame.Kind.data.rawValue {
                    try connection.write(.status(200, on: frame.stream))
                }
            }
        }
        defer { server.stop() }
        let lane = try lane(to: server) { $0.idlePingInterval = .milliseconds(10) }
        async let ended = LaneRun.end(of: lane)
        #expect(await lane.send(LaneScene.batch(0..<1)))
        _ = await lane.completions()
        var pings = 0
        for await _ in pinged {
            pings += 1
            if pings == 3 { break }
        }
        #expect(await lane.send(LaneScene.batch(1..<2)))
        lane.finish()
        var run = LaneRun()
        while let completions = await lane.completions() { run.take(completions) }
        #expect(await ended == nil)
        #expect(run.acceptedCount == 1)
        #expect(server.connections == 1)
    }

    @Test func `used up stream ids lead to a new connection`() async throws {
        let server = try server(Self.defaults) { [.status(200, on: $0)] }
        defer { server.stop() }
        // Ten ids are left on each connection.
        let lane = try lane(to: server, firstStream: .max - 18)
        let run = await LaneRun.of(lane, LaneScene.batch(0..<35))
        #expect(run.error == nil)
        #expect(run.acceptedCount == 35)
        #expect(server.connections == 4)
    }

    @Test func `the provider token goes out in full once, and again when it is renewed`() async throws {
        let sizes = Mutex<[Int]>([])
        let server = try ScriptedServer { connection in
            try connection.write(.settings(Self.defaults))
            while true {
                let headers = try connection.frame(.headers)
                sizes.withLock { $0.append(headers.payload.count) }
                try connection.write(.status(200, on: connection.request()))
            }
        }
        defer { server.stop() }
        let time = ManualTime()
        let source = ProviderTokenSource(
            key: try SigningKey(pem: try SigningKey.generatedPEM()), teamID: "DEF123GHIJ", keyID: "ABC123DEFG",
            now: time.now, uptime: time.uptime)
        let lane = try lane(to: server, source: source) { $0.streamsMax = 1 }
        async let ended = LaneRun.end(of: lane)
        var run = LaneRun()
        for (round, batch) in [LaneScene.batch(0..<3), LaneScene.batch(3..<6)].enumerated() {
            #expect(await lane.send(batch))
            while run.completions.count < 3 * (round + 1), let completions = await lane.completions() {
                run.take(completions)
            }
            time.advance(by: .seconds(55 * 60))
        }
        lane.finish()
        #expect(await lane.completions() == nil)
        #expect(await ended == nil)
        #expect(server.connections == 1)
        #expect(sizes.withLock { $0.map { $0 > 200 } } == [true, false, false, true, false, false])
    }

    @Test func `a new connection takes the TLS session up again`() async throws {
        let resumed = Mutex<[Bool]>([])
        let server = try ScriptedServer { connection in
            resumed.withLock { $0.append(connection.isResumed) }
            try connection.write(.settings(Self.defaults))
            let stream = try connection.request()
            try connection.write(.status(200, on: stream), .goAway(lastStream: stream))
            try connection.readToEnd()
        }
        defer { server.stop() }
        let run = await LaneRun.of(try lane(to: server), LaneScene.batch(0..<3))
        #expect(run.acceptedCount == 3)
        #expect(resumed.withLock { $0 } == [false, true, true])
    }

    @Test(arguments: ["localhost", "127.0.0.1"])
    func `a certificate for another name is not trusted`(host: String) async throws {
        let options = ScriptedServer.Options(subjectAltName: "DNS:api.example.com,IP:127.0.0.2")
        let server = try ScriptedServer(options) { try $0.readToEnd() }
        defer { server.stop() }
        let run = await LaneRun.of(try lane(to: server, host: host), LaneScene.batch(0..<2))
        guard case .untrusted(_, let reason) = run.error else {
            Issue.record("\(String(describing: run.error))")
            return
        }
        #expect(reason.contains("mismatch"))
        #expect(run.count(where: \.isNotSent) == 2)
    }

    @Test func `a server that does not choose HTTP/2 is not spoken to`() async throws {
        let server = try ScriptedServer(ScriptedServer.Options(alpn: nil)) { try $0.readToEnd() }
        defer { server.stop() }
        let run = await LaneRun.of(try lane(to: server), LaneScene.batch(0..<2))
        guard case .untrusted(_, let reason) = run.error else {
            Issue.record("\(String(describing: run.error))")
            return
        }
        #expect(reason.contains("HTTP/2"))
        #expect(run.count(where: \.isNotSent) == 2)
    }

    @Test func `a port that speaks no TLS ends the lane after its attempts`() async throws {
        let server = try ScriptedServer(ScriptedServer.Options(speaksTLS: { _ in false })) { connection in
            _ = try connection.bytes()
            try connection.write(Array("SSH-2.0-OpenSSH_9.2\r\n".utf8))
            _ = try connection.bytes()
        }
        defer { server.stop() }
        let run = await LaneRun.of(try lane(to: server) { $0.connectAttemptsMax = 2 }, LaneScene.batch(0..<2))
        guard case .untrusted = run.error else {
            Issue.record("\(String(describing: run.error))")
            return
        }
        #expect(server.connections == 2)
    }
}
