import Glibc

/// How a simulator behaves. Strict by default (`apns-protocol.md` section 11).
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

    package init(directory: String) {
        self.directory = directory
    }

    package static func systemMilliseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}
