import Foundation
import Glibc

/// How a simulator behaves. Strict by default (`ProviderProtocol` section 11).
package struct SimulatorOptions: Sendable {
    package enum Mode: Sendable {
        /// All checks.
        case strict
        /// 200 to everything, without a look at it: a server to measure clients against.
        case acceptAll
    }

    /// Whether clients are asked for a certificate. One that does not fit gets GOAWAY `BadCertificateEnvironment`.
    package enum ClientCertificates: Sendable {
        case notAsked
        /// Those that ``Simulator/issueClientCertificate(topic:environment:directory:)`` made.
        case own
        /// Those of the authorities in this PEM file.
        case authority(path: String)
    }

    package enum UnknownTokens: Sendable {
        /// `BadDeviceToken`.
        case reject
        /// As if registered for whatever topic is asked for.
        case accept
    }

    /// Where the CA certificate is written, as `ca.pem`; the directory must exist.
    package var directory: String
    /// An address of this machine.
    package var host = "127.0.0.1"
    /// 0: a free port. Nil: the environment is not served.
    package var productionPort: Int? = 0
    package var sandboxPort: Int? = 0
    package var mode = Mode.strict
    /// Event loops, each a thread. More than one only helps with many connections.
    package var threads = 1

    package var keys: [SimulatorKey] = []
    package var clientCertificates = ClientCertificates.own
    /// Takes what the real service was seen to take: DER signatures, padded base64, `Bearer`, `iat` as text.
    package var isLenientWithTokens = false
    /// How far `iat` may lie in the future.
    package var tokenClockSkewSeconds = 60
    /// Different provider tokens within 20 minutes on a connection that pass before `TooManyProviderTokenUpdates`.
    package var tokenUpdatesTolerated = 0

    /// Bundle ids. Those that registered tokens name are known besides.
    package var topics: Set<String> = []
    package var registry = SimulatorRegistry()
    package var unknownTokens = UnknownTokens.reject

    package var streamsMax = 1000
    /// Of a connection without certificate, until its first accepted request.
    package var streamsBeforeAcceptance = 1
    package var payloadBytesMax = 4096
    package var voipPayloadBytesMax = 5120
    package var headerListBytesMax = 8000
    package var connectionWindowBytes = 65_535
    /// Before every answer; costs no timer per request.
    package var answerDelayMs = 0
    package var faults: [FaultRule] = []
    /// For everything that happens at a rate: the same seed and the same order of requests give the same faults.
    package var seed: UInt64 = 1

    /// Added to the clock: a service whose time is not ours.
    package var clockOffsetMs: Int64 = 0
    /// Milliseconds since 1970. The simulator plays another machine and so has a clock of its own, unlike the rest.
    package var clock: @Sendable () -> Int64 = Self.systemMilliseconds

    /// Keep the request log in memory, for ``Simulator/log()``.
    package var keepsLog = false
    /// Append the request log to this file, one JSON object a line; complete when the simulator has stopped.
    package var logPath: String?
    package var logsPayloads = false
    /// Keep what each device shows, for ``Simulator/screens()``.
    package var keepsScreens = false

    package init(directory: String) {
        self.directory = directory
    }

    package static func systemMilliseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}

/// Which of APNs' two worlds a port plays: tokens, keys and certificates of one are unknown in the other.
package enum SimulatorEnvironment: String, Hashable, Sendable, Codable, CaseIterable {
    case production, sandbox
}

/// A provider token key that the simulator knows, as Apple does from the developer account.
package struct SimulatorKey: Sendable {
    package var keyID: String
    package var teamID: String
    /// The `.p8` private key, or the public key alone; PEM.
    package var pem: String
    /// Keys made before 2025 work in both.
    package var environments: Set<SimulatorEnvironment>
    /// Bundle ids of a topic-specific key; nil: every topic of the team.
    package var topics: Set<String>?

    package init(
        keyID: String, teamID: String, pem: String,
        environments: Set<SimulatorEnvironment> = Set(SimulatorEnvironment.allCases), topics: Set<String>? = nil
    ) {
        self.keyID = keyID
        self.teamID = teamID
        self.pem = pem
        self.environments = environments
        self.topics = topics
    }

    /// With the key of a file. ``SimulatorError/unreadableKey(path:)``.
    package init(keyID: String, teamID: String, path: String) throws(SimulatorError) {
        guard let pem = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw .unreadableKey(path: path)
        }
        self.init(keyID: keyID, teamID: teamID, pem: pem)
    }
}

/// The part of the options that requests are judged by; does not change while the simulator runs.
struct SimulatorPolicy: Sendable {
    let acceptsAll: Bool
    let keys: [String: VerificationKey]
    let isLenientWithTokens: Bool
    let tokenClockSkewSeconds: Int
    let tokenUpdatesTolerated: Int
    let acceptsUnknownTokens: Bool
    let payloadBytesMax: Int
    let voipPayloadBytesMax: Int
    let headerListBytesMax: Int
    let streamsMax: Int
    let streamsBeforeAcceptance: Int
    let asksForCertificate: Bool
    private let clock: @Sendable () -> Int64
    private let clockOffsetMs: Int64

    init(_ options: SimulatorOptions) throws(SimulatorError) {
        if case .acceptAll = options.mode { acceptsAll = true } else { acceptsAll = false }
        if case .accept = options.unknownTokens { acceptsUnknownTokens = true } else { acceptsUnknownTokens = false }
        if case .notAsked = options.clientCertificates { asksForCertificate = false } else { asksForCertificate = true }
        var keys: [String: VerificationKey] = [:]
        for key in options.keys { keys[key.keyID] = try VerificationKey(key) }
        self.keys = keys
        isLenientWithTokens = options.isLenientWithTokens
        tokenClockSkewSeconds = options.tokenClockSkewSeconds
        tokenUpdatesTolerated = options.tokenUpdatesTolerated
        payloadBytesMax = options.payloadBytesMax
        voipPayloadBytesMax = options.voipPayloadBytesMax
        headerListBytesMax = options.headerListBytesMax
        streamsMax = options.streamsMax
        streamsBeforeAcceptance = options.streamsBeforeAcceptance
        clock = options.clock
        clockOffsetMs = options.clockOffsetMs
    }

    /// Milliseconds since 1970, as the simulated service sees it.
    func nowMs() -> Int64 { clock() + clockOffsetMs }
}

/// Why a simulator cannot be made or started.
package enum SimulatorError: Error, Hashable, Sendable, CustomStringConvertible {
    case unusableKey(keyID: String, reason: String)
    case unreadableKey(path: String)
    case unreadableFile(path: String, reason: String)
    case unwritableFile(path: String, reason: String)
    case malformedLine(path: String, line: Int, reason: String)
    case certificateNotMade(reason: String)
    case cannotServe(reason: String)
    case noEnvironment

    package var description: String {
        switch self {
        case .unusableKey(let keyID, let reason):
            "cannot use the key \(keyID): \(reason); give the .p8 file's text, or a P-256 public key in PEM"
        case .unreadableKey(let path):
            "cannot read the key file \(path); check the path and its permissions"
        case .unreadableFile(let path, let reason):
            "cannot read \(path): \(reason); check the path and its permissions"
        case .unwritableFile(let path, let reason):
            "cannot write \(path): \(reason); check the path and its permissions"
        case .malformedLine(let path, let line, let reason):
            "\(path):\(line): \(reason); each line is one JSON object"
        case .certificateNotMade(let reason):
            "cannot make a certificate: \(reason)"
        case .cannotServe(let reason):
            "cannot start the simulator: \(reason)"
        case .noEnvironment:
            "the simulator has no port to serve; give one for production or sandbox"
        }
    }
}
