package import APNs
package import APNsSimulator
import Foundation
import Platform
package import TestSupport

/// A simulator with a key and registered tokens, and pushes to them.
package final class LaneScene: Sendable {
    package static let topic = "com.example.wendercast"
    package static let headers = PushHeaders(topic: topic, pushType: "alert", priority: 10)

    package let simulator: Simulator
    package let directory: TemporaryDirectory
    package let key: SigningKey

    package init(registered: Int = 500, _ change: (inout SimulatorOptions) -> Void = { _ in }) throws {
        directory = try TemporaryDirectory()
        // No process for each key: starting many at once beside busy lanes is what a test run dies of.
        try directory.write(try SigningKey.generatedPEM(), to: "key.p8")
        key = try SigningKey(path: directory.file("key.p8"))
        var options = SimulatorOptions(directory: directory.path)
        options.sandboxPort = nil
        options.keepsLog = true
        options.logsPayloads = true
        options.keys = [
            SimulatorKey(
                keyID: "ABC123DEFG", teamID: "DEF123GHIJ",
                pem: try String(contentsOfFile: directory.file("key.p8"), encoding: .utf8))
        ]
        for number in 0..<registered {
            options.registry.register(token: Self.token(number), environment: .production, topic: Self.topic)
        }
        change(&options)
        simulator = try Simulator(options)
        try simulator.start()
    }

    deinit { simulator.stop() }

    package var endpoint: PushEndpoint { PushEndpoint(host: "127.0.0.1", port: simulator.port(for: .production)) }

    package func source(
        key: SigningKey? = nil, sharing: RecordInMemory? = nil,
        now: @escaping @Sendable () -> Int64 = SimulatorOptions.systemMilliseconds
    ) -> ProviderTokenSource {
        // With a record the time stands still: the lane waits for a renewal for as long as it takes.
        let still: @Sendable () -> Duration = { .seconds(1000) }
        let uptime = sharing == nil ? ProviderTokenClock.timeSinceBoot : still
        return ProviderTokenSource(
            key: key ?? self.key, teamID: "DEF123GHIJ", keyID: "ABC123DEFG",
            clock: ProviderTokenClock(now: now, uptime: uptime, bootID: "boot"), sharing: sharing)
    }

    package func lane(
        _ kind: TransportKind, credential: PushCredential? = nil, trust: String? = nil,
        to endpoint: PushEndpoint? = nil, _ change: (inout LaneLimits) -> Void = { _ in }
    ) -> any Lane {
        var limits = LaneLimits()
        limits.requestDeadline = .seconds(60)
        change(&limits)
        return kind.make(credential ?? .token(source()), limits, trust ?? simulator.authorityPath)
            .lane(to: endpoint ?? self.endpoint, named: "lane")
    }

    package static func token(_ number: Int) -> [UInt8] {
        [UInt8](repeating: 0xab, count: 24) + withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) }
    }

    package static func push(_ number: Int) -> Push {
        Push(
            tag: Int64(number),
            id: PushIDSpace(namespace: PushID(high: 1, low: 2)).id(run: 1, device: Int64(number), generation: 1),
            token: token(number), payload: Array(#"{"aps":{"alert":"Episode \#(number)"}}"#.utf8))
    }

    package static func batch(_ numbers: Range<Int>, headers: PushHeaders = headers) -> PushBatch {
        PushBatch(headers: headers, pushes: numbers.map(push))
    }
}

extension LaneScene {
    package func certificate(for environment: SimulatorEnvironment) throws -> PushCredential {
        let paths = try simulator.issueClientCertificate(
            topic: Self.topic, environment: environment, directory: directory.path)
        return .certificate(
            try ClientCertificate(
                certificatePath: paths.certificatePath, privateKeyPath: paths.keyPath,
                now: SimulatorOptions.systemMilliseconds()))
    }
}

enum HexText {
    static func of(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
