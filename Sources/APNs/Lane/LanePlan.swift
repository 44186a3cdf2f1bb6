import HTTP2
import Logging

/// The fixed settings of a lane.
struct LanePlan: Sendable {
    var name: String
    var endpoint: PushEndpoint
    var credential: PushCredential
    var limits: LaneLimits
    var trust: String?
    var logger: Logger
    var backOff: ConnectBackOff
    /// The source of the loop's clock. Tests stop and set it.
    var monotonic: @Sendable () -> UInt64 = EventLoop.monotonicNanoseconds
}

/// Bounds of a lane. Unit last in the name.
package struct LaneLimits: Hashable, Sendable {
    /// The maximum number of pushes whose completions were not yet taken: two leases.
    package var outstandingMax = 2000
    /// The maximum number of requests on the wire, whatever the peer allows.
    package var streamsMax = 1000
    /// The maximum time for a response. Like all deadlines of a lane, it counts only time in which the lane could read.
    /// Data that has arrived is read first, however long the process was stopped.
    package var requestDeadline: Duration = .seconds(20)
    package var connectDeadline: Duration = .seconds(10)
    /// The time for which requests on the wire may still be answered after a stop. It is as long as
    /// ``requestDeadline``, because an abandoned request is in doubt.
    package var drainLimit: Duration = .seconds(20)
    /// The number of missed deadlines in a row that retires the connection.
    package var missedDeadlinesMax = 3
    /// The idle time after which a connection is probed by PING. Only `native` uses the three PING limits, because
    /// libcurl sends no PING.
    package var idlePingInterval: Duration = .seconds(60)
    /// The time with no bytes, while responses are awaited, after which a connection is probed by PING.
    package var silencePingInterval: Duration = .seconds(5)
    /// The time with no bytes after a PING, after which the connection counts as dead.
    package var pingDeadline: Duration = .seconds(5)
    /// The number of attempts to connect before `run()` throws. The back-off between them grows from 1 s to 60 s.
    package var connectAttemptsMax = 3
    /// The number of attempts to connect after the lane has had a response, if greater. The service existed, so the
    /// lane waits about two minutes for it.
    package var reconnectAttemptsMax = 8
    package init() {}
}

/// The waits of a lane between attempts to connect (`ProviderProtocol` section 8).
package struct ConnectBackOff: Sendable {
    package var first: Duration
    package var longest: Duration
    /// A number from 0 to 1. It shortens the wait by up to a quarter, so that lanes do not reconnect together.
    package var jitter: @Sendable () -> Double

    package init(
        first: Duration = .seconds(1), longest: Duration = .seconds(60),
        jitter: @escaping @Sendable () -> Double = { Double.random(in: 0...1) }
    ) {
        self.first = first
        self.longest = longest
        self.jitter = jitter
    }

    /// Returns the wait after this number of failures in a row, counted from 1: `first`, doubling up to `longest`.
    package func delay(afterFailures failures: Int) -> Duration {
        guard failures > 0 else { return .zero }
        let doublings = min(failures - 1, 16)
        let full = min(longest, first * (1 << doublings))
        return full * (1 - 0.25 * min(1, max(0, jitter())))
    }
}

extension Duration {
    /// The length in nanoseconds. A negative duration counts as 0.
    var nanoseconds: UInt64 {
        UInt64(clamping: max(0, components.seconds)) * 1_000_000_000
            + UInt64(clamping: max(0, components.attoseconds / 1_000_000_000))
    }

    /// Whole milliseconds without the fraction.
    var milliseconds: Int {
        Int(components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000)
    }
}
