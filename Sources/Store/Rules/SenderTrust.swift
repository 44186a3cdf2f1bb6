package import Model

/// How long a sender trusts its last heartbeat.
package enum SenderTrust {
    /// A sender may start requests for this long after it sent a heartbeat that the store confirmed. No machine takes
    /// over its work earlier. The window covers two heartbeats and a margin.
    package static let window: Duration = .milliseconds(2_500)
    /// The interval between two heartbeats of a sender, even of one that sends nothing.
    package static let beatEvery: Duration = .seconds(1)
    /// The minimum time between the response to one heartbeat and the next heartbeat.
    private static let shortest: Duration = .milliseconds(100)
    /// Heartbeats begin at multiples of this uptime, so that all runs of a process share one transaction.
    private static let grid: Duration = .milliseconds(250)
    /// The tolerance for a sleep that ends late.
    private static let late: Duration = .milliseconds(50)

    /// Returns the pause before the next heartbeat.
    ///
    /// - Parameters:
    ///   - began: when the last heartbeat was sent, by the uptime.
    ///   - now: the uptime.
    package static func pause(since began: Duration, now: Duration) -> Duration {
        let earliest = max(now + shortest, began + beatEvery)
        let past = ((earliest - late) / grid).rounded(.up)
        return max(.zero, grid * past - now)
    }

    /// Whether heartbeats of this duration keep the trust window open: each heartbeat gets its response before the
    /// window of the previous one ends.
    package static func staysOpen(withBeatsOf duration: Duration) -> Bool {
        max(beatEvery, duration + shortest + grid) + duration <= window
    }
}

/// Judges whether a sender's heartbeats are fast enough to keep its trust window open. A sender that is too slow leaves
/// the run to others.
package struct HeartbeatPace: Hashable, Sendable {
    /// A change of the judgement needs this many heartbeats in a row.
    private static let needed = 2

    /// `nil` before the first heartbeat.
    package private(set) var isTooSlow: Bool?
    /// When the sender became too slow, by the uptime.
    package private(set) var since: Duration?
    private var against = 0

    package init() {}

    /// Records a heartbeat that took this long to get its response from the store. Returns whether the judgement
    /// changed.
    @discardableResult
    package mutating func note(_ duration: Duration, at uptime: Duration) -> Bool {
        let isSlow = !SenderTrust.staysOpen(withBeatsOf: duration)
        guard isSlow != isTooSlow else {
            against = 0
            return false
        }
        against += 1
        guard isTooSlow == nil || against >= Self.needed else { return false }
        let isChange = isSlow || isTooSlow != nil
        (isTooSlow, against, since) = (isSlow, 0, isSlow ? uptime : nil)
        return isChange
    }
}

/// The rule that decides whether a sender joins a run that another sender leads.
///
/// A busy sender joins runs with enough pending deliveries for all. An idle sender also joins runs with fewer pending
/// deliveries, one run at a time. So a restarted sender does not stay idle beside a run that others still send.
package struct JoinPolicy {
    /// The number of pending deliveries that is enough for all: two leases for each of two senders.
    private static let worthwhile = 4_000
    /// The minimum age of a run with fewer pending deliveries. A younger run may end soon, so it is not worth joining.
    private static let youngest: Duration = .seconds(2)

    private var isIdle: Bool
    private let now: Timestamp

    /// - Parameters:
    ///   - isIdle: the sender has no run.
    ///   - now: by the store's clock.
    package init(isIdle: Bool, now: Timestamp) {
        self.isIdle = isIdle
        self.now = now
    }

    /// Returns whether the sender joins this run, which a living sender leads. Call it for one run after the other.
    package mutating func joins(_ run: Run) -> Bool {
        guard run.state == .running, !run.isTest else { return false }
        if !run.isFrozen || run.counts.pending >= Self.worthwhile { return true }
        guard isIdle, run.counts.pending >= LeaseShare.least, let startedAt = run.startedAt,
            now - startedAt >= Self.youngest
        else { return false }
        isIdle = false
        return true
    }
}

/// The number of deliveries that a sender leases at once if several senders share a run.
package enum LeaseShare {
    /// A smaller lease is not worth its transaction.
    package static let least = 64
    /// The divisor of a lease: a lease is at most a quarter of the sender's share of the pending deliveries.
    private static let parts = 4

    /// Returns the size of the next lease. Leases shrink as the run nears its end, so that no sender is left with work
    /// when the others have none.
    ///
    /// - Parameters:
    ///   - most: the maximum size of a lease.
    ///   - pending: the deliveries that no sender has leased yet.
    ///   - senders: the senders that share the run.
    ///   - rate: the pushes per second that this sender settled lately; `nil` if it is not known.
    package static func size(atMost most: Int, pending: Int, senders: Int, rate: Double?) -> Int {
        guard senders > 1 else { return most }
        let share = pending / (parts * senders)
        guard share < most else { return most }
        let own = rate.map { Int(min($0, Double(most))) } ?? most
        return min(most, max(least, min(share, own)))
    }

    /// Whether a sender should release the deliveries that it has not started, because it holds more than it sends in
    /// the next seconds. It is evaluated while another sender of the run has nothing to send.
    package static func isTooMuch(held: Int, rate: Double) -> Bool { held > enough(rate: rate) }

    /// Returns the maximum number of deliveries that a sender holds while others have nothing to send. It is the
    /// number that the sender sends in two seconds, and at least twice ``least``.
    package static func enough(rate: Double) -> Int { Int(max(Double(2 * least), min(2 * rate, 1_000_000))) }
}
