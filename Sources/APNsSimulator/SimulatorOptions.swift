import Foundation
import Glibc

/// The behaviour of a simulator. It is strict by default (`ProviderProtocol` section 11).
package struct SimulatorOptions: Sendable {
    package enum Mode: Sendable {
        /// Makes all checks.
        case strict
        /// Responds with 200 to everything, with no checks, to measure clients.
        case acceptAll
    }

    /// The requested client certificates. A certificate that does not fit gets GOAWAY `BadCertificateEnvironment`.
    package enum ClientCertificates: Sendable {
        case notAsked
        /// Certificates from ``Simulator/issueClientCertificate(topic:environment:directory:)``.
        case own
        /// Certificates of the authorities in this PEM file.
        case authority(path: String)
    }

    package enum UnknownTokens: Sendable {
        /// Responds with `BadDeviceToken`.
        case reject
        /// Treats the token as registered for the requested topic.
        case accept
    }

    /// The existing directory in which `ca.pem`, the CA certificate, is written.
    package var directory: String
    /// An address of this machine.
    package var host = "127.0.0.1"
    /// The ports of the two environments. 0 means a free port. `nil` means that the environment is not served.
    package var productionPort: Int? = 0
    package var sandboxPort: Int? = 0
    package var mode = Mode.strict
    /// The number of event loops, each with its own thread. A second one helps only if there are many connections.
    package var threads = 1

    package var keys: [SimulatorKey] = []
    package var clientCertificates = ClientCertificates.own
    /// Whether tokens are checked as leniently as by the real service. It was seen to accept DER signatures, padded
    /// Base64, `Bearer` and `iat` as text.
    package var isLenientWithTokens = false
    /// The number of seconds by which `iat` may be in the future.
    package var tokenClockSkewSeconds = 60
    /// The number of token renewals that a connection may make within 20 minutes. A further renewal gets
    /// `TooManyProviderTokenUpdates`.
    package var tokenUpdatesTolerated = 0

    /// The known bundle ids. The bundle ids of registered tokens are also known.
    package var topics: Set<String> = []
    package var registry = SimulatorRegistry()
    package var unknownTokens = UnknownTokens.reject

    package var streamsMax = 1000
    /// The stream limit of a connection with no certificate, until its first accepted request.
    package var streamsBeforeAcceptance = 1
    package var payloadBytesMax = 4096
    package var voipPayloadBytesMax = 5120
    package var headerListBytesMax = 8000
    package var connectionWindowBytes = 65_535
    /// The delay before every response. All delayed responses of a connection share one timer.
    package var answerDelayMs = 0
    package var faults: [FaultRule] = []
    /// The seed of all random decisions. The same seed and the same order of requests give the same faults.
    package var seed: UInt64 = 1

    /// The offset of the service's clock, to simulate a service whose clock is wrong.
    package var clockOffsetMs: Int64 = 0
    /// The clock, in milliseconds since 1970. It is separate from Fanfare's clock, because APNs is another machine.
    package var clock: @Sendable () -> Int64 = Self.systemMilliseconds

    /// Whether the request log is kept in memory, for ``Simulator/log()``.
    package var keepsLog = false
    /// The file to which the request log is appended, one JSON object per line. It is complete when the simulator has
    /// stopped.
    package var logPath: String?
    package var logsPayloads = false
    /// Whether each device's screen is kept, for ``Simulator/devices()``.
    package var simulatesDevices = false

    package init(directory: String) {
        self.directory = directory
    }

    package static func systemMilliseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}

/// The environment of APNs that a port simulates. Each environment has its own tokens, keys and certificates.
package enum SimulatorEnvironment: String, Hashable, Sendable, Codable, CaseIterable {
    case production, sandbox
}

/// A provider token key that the simulator knows, as Apple knows keys from the developer account.
package struct SimulatorKey: Sendable {
    package var keyID: String
    package var teamID: String
    /// The `.p8` private key, or only the public key, as PEM.
    package var pem: String
    /// The environments of the key. Keys created before 2025 work in both.
    package var environments: Set<SimulatorEnvironment>
    /// The bundle ids of a topic-specific key. `nil` for every topic of the team.
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

    /// Reads the key from a file. Throws ``SimulatorError/unreadableKey(path:)``.
    package init(keyID: String, teamID: String, path: String) throws(SimulatorError) {
        guard let pem = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw .unreadableKey(path: path)
        }
        self.init(keyID: keyID, teamID: teamID, pem: pem)
    }
}

/// The options that the checks of requests use. They do not change while the simulator runs.
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

    /// Returns the simulated service's time, in milliseconds since 1970.
    func nowMs() -> Int64 { clock() + clockOffsetMs }
}

/// The reason why a simulator cannot be created or started.
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
            "cannot create a certificate: \(reason)"
        case .cannotServe(let reason):
            "cannot start the simulator: \(reason)"
        case .noEnvironment:
            "the simulator has no port to serve; give one for production or sandbox"
        }
    }
}
