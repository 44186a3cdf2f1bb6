import Logging
import Synchronization
import TestSupport
import Testing
import TransportContract

@testable import APNs

/// A response whose headers have arrived, and whose stream the server never ends.
@Suite(.timeLimit(.minutes(10))) struct `A response without its end` {
    /// Keeps connections open after their script. Only the server's thread adds to it.
    private final class OpenConnections: @unchecked Sendable {
        var all: [ScriptedConnection] = []
    }

    private func lane(
        _ kind: TransportKind, to server: ScriptedServer, _ change: (inout LaneLimits) -> Void = { _ in }
    ) throws -> any Lane {
        var limits = LaneLimits()
        limits.requestDeadline = .seconds(60)
        limits.drainLimit = .milliseconds(50)
        change(&limits)
        let key = try SigningKey(pem: try SigningKey.generatedPEM())
        let source = ProviderTokenSource(key: key, teamID: "DEF123GHIJ", keyID: "ABC123DEFG", now: { 0 })
        return kind.make(.token(source), limits, server.authorityPath)
            .lane(to: PushEndpoint(host: "127.0.0.1", port: server.port), named: "lane")
    }

    @Test(arguments: TransportKind.all)
    func `counts by its status when the lane ends`(kind: TransportKind) async throws {
        let server = try ScriptedServer { connection in
            try connection.write(.settings((3, 1000)))
            for number in 0..<4 {
                let stream = try connection.request()
                try connection.write(.status(number == 2 ? 400 : 200, on: stream, ends: number == 0 || number == 3))
            }
            try connection.readToEnd()
        }
        defer { server.stop() }
        let lane = try lane(kind, to: server)
        let running = Task { await LaneRun.end(of: lane) }
        #expect(await lane.send(LaneScene.batch(0..<4)))
        var run = LaneRun()
        // With the response to the last one, the headers of the others have arrived.
        while run.completions.count < 2, let completions = await lane.completions() { run.take(completions) }
        running.cancel()
        while let completions = await lane.completions() { run.take(completions) }
        #expect(await running.value == nil)
        #expect(run.isComplete(0..<4) && run.acceptedCount == 3)
        #expect(run.count { $0 == .cutOff(status: 400) } == 1)
    }

    /// The fifth retired connection with open requests ends the first one.
    @Test(arguments: TransportKind.all)
    func `counts by its status when its retired connection is ended`(kind: TransportKind) async throws {
        let (connections, perConnection) = (5, 4)
        let open = OpenConnections()
        let server = try ScriptedServer { connection in
            open.all.append(connection)
            try connection.write(.settings((3, 1000)))
            try connection.write(.status(200, on: try connection.request()))
            try connection.write(.status(200, on: try connection.request(), ends: false))
            try connection.write(.status(400, on: try connection.request(), ends: false))
            let last = try connection.request()
            let body = Frame.data(Array(#"{"reason":"Shutdown"}"#.utf8), on: last)
            try connection.write(.status(503, on: last, ends: false), body)
        }
        defer { server.stop() }
        let lane = try lane(kind, to: server) { $0.streamsMax = 3 }
        let running = Task { await LaneRun.end(of: lane) }
        let pushes = 0..<connections * perConnection
        #expect(await lane.send(LaneScene.batch(pushes)))
        var run = LaneRun()
        // Two responses of each connection are whole, and the first connection ends the other two of its own.
        let whole = 2 * connections
        while run.completions.count < whole + 2, let completions = await lane.completions() { run.take(completions) }
        #expect(run.acceptedCount == connections + 1)
        #expect(run.count { $0 == .cutOff(status: 400) } == 1)
        running.cancel()
        while let completions = await lane.completions() { run.take(completions) }
        #expect(await running.value == nil)
        #expect(run.isComplete(pushes) && run.acceptedCount == 2 * connections && run.count(where: \.isUnknown) == 0)
    }
}
