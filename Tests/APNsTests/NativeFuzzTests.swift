import Foundation
import Logging
import Platform
import Synchronization
import TestSupport
import Testing
import TransportContract

@testable import APNs

/// Whatever a server says, a native lane neither crashes nor hangs, and answers each push once. Two seconds, or as many
/// as `FANFARE_FUZZ_SECONDS` names.
@Suite(.timeLimit(.minutes(10)))
struct NativeFuzzTests {
    private static let seconds = Int(ProcessInfo.processInfo.environment["FANFARE_FUZZ_SECONDS"] ?? "") ?? 2
    private static let connectionsMin = 20

    @Test func `no bytes of a server crash a lane, hang it or cost it a push`() async throws {
        let server = try ScriptedServer(ScriptedServer.Options(speaksTLS: { $0 % 16 != 0 })) { connection in
            var noise = ServerNoise(seed: UInt64(connection.number))
            try connection.write(noise.opening())
            // The client's first bytes, then answers to what it may have sent, and sometimes the end.
            while true {
                _ = try connection.bytes()
                try connection.write(noise.answers())
                if noise.endsNow { return }
            }
        }
        defer { server.stop() }
        let lane = try lane(to: server)
        let running = Task { await LaneRun.end(of: lane) }
        let start = ContinuousClock.now
        // Also until there were enough connections: a busy machine makes few in two seconds.
        func goesOn() -> Bool {
            let passed = ContinuousClock.now - start
            return passed < .seconds(Self.seconds)
                || passed < Process.longest && server.connections <= Self.connectionsMin
        }
        var run = LaneRun()
        var sent = 0
        while goesOn() {
            guard await lane.send(LaneScene.batch(sent..<sent + 50)) else { break }
            sent += 50
            while run.completions.count + 20 < sent, goesOn(), let completions = await lane.completions() {
                run.take(completions)
            }
        }
        running.cancel()
        while let completions = await lane.completions() { run.take(completions) }
        let error = await running.value
        #expect(error == nil, "\(String(describing: error))")
        #expect(run.isComplete(0..<sent))
        #expect(server.connections > Self.connectionsMin, "\(server.connections) connections, \(sent) pushes")
        #expect(server.faults.isEmpty)
    }

    private func lane(to server: ScriptedServer) throws -> any Lane {
        var limits = LaneLimits()
        limits.requestDeadline = .milliseconds(60)
        limits.connectDeadline = .milliseconds(500)
        limits.silencePingInterval = .milliseconds(30)
        limits.pingDeadline = .milliseconds(30)
        limits.drainLimit = .milliseconds(100)
        limits.connectAttemptsMax = .max
        limits.reconnectAttemptsMax = .max
        let key = try SigningKey(pem: try SigningKey.generatedPEM())
        let source = ProviderTokenSource(key: key, teamID: "DEF123GHIJ", keyID: "ABC123DEFG", now: { 0 })
        return NativeTransport(
            credential: .token(source), limits: limits, trust: server.authorityPath, logger: Logger(label: "test"),
            backOff: Backoff(first: .zero, longest: .zero)
        ).lane(to: PushEndpoint(host: "127.0.0.1", port: server.port), named: "fuzzed")
    }
}
