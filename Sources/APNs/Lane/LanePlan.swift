import HTTP2
import Logging
package import Platform

/// The fixed settings of a lane.
struct LanePlan: Sendable {
    var name: String
    var endpoint: PushEndpoint
    var credential: PushCredential
    var limits: LaneLimits
    var trust: String?
    var logger: Logger
    var backOff: Backoff
    /// The source of the loop's clock. Tests stop and set it.
    var monotonic: @Sendable () -> UInt64 = EventLoop.monotonicNanoseconds
}

/// The limits of a lane.
package struct LaneLimits: Hashable, Sendable {
    /// The number of pushes without a taken completion at which the lane accepts no further batch: two leases.
    package var outstandingMax = 2000
    /// The maximum number of concurrent requests, even if the peer allows more.
    package var streamsMax = 1000
    /// The maximum time for a response. Like all deadlines of a lane, it counts only time in which the lane could read.
    /// After a pause of the process, the lane first reads the data that has arrived.
    package var requestDeadline: Duration = .seconds(20)
    package var connectDeadline: Duration = .seconds(10)
    /// The time for which requests on the wire may still get their responses after a stop. It is as long as
    /// ``requestDeadline``, because an abandoned request is in doubt.
    package var drainLimit: Duration = .seconds(20)
    /// The number of missed deadlines in a row that retires the connection.
    package var missedDeadlinesMax = 3
    /// The idle time after which a connection is probed by PING. Only `native` uses the three PING limits, because
    /// libcurl sends no PING.
    package var idlePingInterval: Duration = .seconds(60)
    /// The time without received bytes after which a connection with open requests is probed by PING.
    package var silencePingInterval: Duration = .seconds(5)
    /// The time after a PING within which bytes must arrive. Otherwise the connection counts as dead.
    package var pingDeadline: Duration = .seconds(5)
    /// The number of attempts to connect before `run()` throws. The back-off between them grows from 1 s to 60 s.
    package var connectAttemptsMax = 3
    /// The number of attempts to connect after the lane has had a response, if greater than ``connectAttemptsMax``. The
    /// endpoint is known to exist, so the lane waits about two minutes for it.
    package var reconnectAttemptsMax = 8
    package init() {}
}

extension Backoff {
    /// The waits of a lane between attempts to connect (`ProviderProtocol` section 8).
    package static var connecting: Backoff { Backoff(first: .seconds(1), longest: .seconds(60)) }
}

extension Duration {
    /// The length in nanoseconds. A negative duration counts as 0.
    var nanoseconds: UInt64 {
        UInt64(clamping: max(0, components.seconds)) * 1_000_000_000
            + UInt64(clamping: max(0, components.attoseconds / 1_000_000_000))
    }

    /// The length in whole milliseconds, rounded towards zero.
    var milliseconds: Int {
        Int(components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000)
    }
}
