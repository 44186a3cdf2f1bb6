import HTTP2
import Logging

/// What a lane is to do, fixed when it is made.
struct LanePlan: Sendable {
    var name: String
    var endpoint: PushEndpoint
    var credential: PushCredential
    var limits: LaneLimits
    var trust: String?
    var logger: Logger
    var backOff: ConnectBackOff
    /// What the clock of the lane's loop is made of; tests stop and set it.
    var monotonic: @Sendable () -> UInt64 = EventLoop.monotonicNanoseconds
}

/// Bounds of a lane. Unit last in the name.
package struct LaneLimits: Hashable, Sendable {
    /// Pushes handed over whose responses were not yet taken: two leases.
    package var outstandingMax = 2000
    /// Requests on the wire at once, whatever the peer allows.
    package var streamsMax = 1000
    /// How long an answer may take. Like all deadlines of a lane it counts time in which the lane could read only:
    /// what has come is read first, however long the process was stopped.
    package var requestDeadline: Duration = .seconds(20)
    package var connectDeadline: Duration = .seconds(10)
    /// How long requests on the wire may still be answered after a stop: as long as ever, since one that is given up is
    /// in doubt.
    package var drainLimit: Duration = .seconds(20)
    /// Deadlines missed in a row that retire the connection.
    package var missedDeadlinesMax = 3
    /// Without traffic for so long, a connection is asked for a sign of life by PING. The three PING bounds are kept by
    /// `native` only: libcurl sends none.
    package var idlePingInterval: Duration = .seconds(60)
    /// As above, while answers are waited for.
    package var silencePingInterval: Duration = .seconds(5)
    /// Without a sign of life for so long after a PING, the connection is dead.
    package var pingDeadline: Duration = .seconds(5)
    /// Attempts to connect, with back-off from 1 s to 60 s between them, before `run()` throws.
    package var connectAttemptsMax = 3
    /// The same, if more, once the lane has had an answer: the service was there, and is waited for, about two minutes.
    package var reconnectAttemptsMax = 8
    package init() {}
}

/// How long a lane waits between attempts to connect (`ProviderProtocol` section 8).
package struct ConnectBackOff: Sendable {
    package var first: Duration
    package var longest: Duration
    /// From 0 to 1; takes up to a quarter off, so that lanes do not come back together.
    package var jitter: @Sendable () -> Double

    package init(
        first: Duration = .seconds(1), longest: Duration = .seconds(60),
        jitter: @escaping @Sendable () -> Double = { Double.random(in: 0...1) }
    ) {
        self.first = first
        self.longest = longest
        self.jitter = jitter
    }

    /// The wait after the given number of failures in a row, counted from 1: `first`, doubling up to `longest`.
    package func delay(afterFailures failures: Int) -> Duration {
        guard failures > 0 else { return .zero }
        let doublings = min(failures - 1, 16)
        let full = min(longest, first * (1 << doublings))
        return full * (1 - 0.25 * min(1, max(0, jitter())))
    }
}

extension Duration {
    /// Of a length from 0 on; a negative one counts as 0.
    var nanoseconds: UInt64 {
        UInt64(clamping: max(0, components.seconds)) * 1_000_000_000
            + UInt64(clamping: max(0, components.attoseconds / 1_000_000_000))
    }

    /// Whole milliseconds, the fraction dropped.
    var milliseconds: Int {
        Int(components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000)
    }
}
