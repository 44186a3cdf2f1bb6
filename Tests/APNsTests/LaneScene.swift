import APNsSimulator
import Foundation
import Logging

@testable import APNs

/// A kind of transport under test; every kind passes the same suites.
struct TransportKind: Sendable, CustomStringConvertible {
    var description: String
    /// libcurl tells no streams apart and does not say what it has written. With it, and there alone:
    /// - what is in flight when a connection ends, or when GOAWAY or REFUSED_STREAM comes, may end as unknown;
    /// - a silent connection is noticed by deadlines, for there is no PING;
    /// - the reason of a GOAWAY is not known.
    var knowsStreams: Bool
    var make: @Sendable (PushCredential, LaneLimits, _ trust: String?) -> any Transport

    static let all = [
        TransportKind(description: "curl", knowsStreams: false) { credential, limits, trust in
            CurlTransport(
                credential: credential, limits: limits, trust: trust, logger: Logger(label: "test"),
                backOff: ConnectBackOff(first: .milliseconds(1), longest: .milliseconds(1)))
        },
        TransportKind(description: "native", knowsStreams: true) { credential, limits, trust in
            NativeTransport(
                credential: credential, limits: limits, trust: trust, logger: Logger(label: "test"),
                backOff: ConnectBackOff(first: .milliseconds(1), longest: .milliseconds(1)))
        },
    ]
}

/// A simulator with a key and registered tokens, and pushes to them.
final class LaneScene: Sendable {
    static let topic = "com.example.wendercast"
    static let headers = PushHeaders(topic: topic, pushType: "alert", priority: 10)

    let simulator: Simulator
    let directory: TemporaryDirectory
    let key: SigningKey

    init(registered: Int = 500, _ change: (inout SimulatorOptions) -> Void = { _ in }) throws {
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

    var endpoint: PushEndpoint { PushEndpoint(host: "127.0.0.1", port: simulator.port(for: .production)) }

    func source(
        key: SigningKey? = nil, now: @escaping @Sendable () -> Int64 = SimulatorOptions.systemMilliseconds
    ) -> ProviderTokenSource {
        ProviderTokenSource(key: key ?? self.key, teamID: "DEF123GHIJ", keyID: "ABC123DEFG", now: now)
    }

    func lane(
        _ kind: TransportKind, credential: PushCredential? = nil, trust: String? = nil,
        to endpoint: PushEndpoint? = nil, _ change: (inout LaneLimits) -> Void = { _ in }
    ) -> any Lane {
        var limits = LaneLimits()
        limits.requestDeadline = .seconds(60)
        change(&limits)
        return kind.make(credential ?? .token(source()), limits, trust ?? simulator.authorityPath)
            .lane(to: endpoint ?? self.endpoint, named: "lane")
    }

    static func token(_ number: Int) -> [UInt8] {
        [UInt8](repeating: 0xab, count: 24) + withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) }
    }

    static func push(_ number: Int) -> Push {
        Push(
            tag: Int64(number),
            id: PushIDSpace(namespace: PushID(high: 1, low: 2)).id(run: 1, device: Int64(number), generation: 1),
            token: token(number), payload: Array(#"{"aps":{"alert":"Episode \#(number)"}}"#.utf8))
    }

    static func batch(_ numbers: Range<Int>, headers: PushHeaders = headers) -> PushBatch {
        PushBatch(headers: headers, pushes: numbers.map(push))
    }
}

enum HexText {
    static func of(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
