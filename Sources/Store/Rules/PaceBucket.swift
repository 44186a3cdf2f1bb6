package import Model

/// A token bucket that limits senders to a `pace`. It fills at the given rate and holds a quarter of a second's worth.
/// With a ramp, the rate grows evenly from a tenth of the pace to the full pace, starting at the first push.
///
/// Its times are ``ClockReading/uptime``: setting the wall clock neither fills the bucket nor stalls it.
package struct PaceBucket: Hashable, Sendable {
    package enum Allowance: Hashable, Sendable {
        case now(Int)
        case after(Duration)
    }

    private static let burstSeconds = 0.25
    /// After this idle time the bucket restarts, including its ramp.
    private static let idleMax: Duration = .seconds(60)

    package private(set) var tokens: Double
    package private(set) var startedAt: Duration
    package private(set) var filledAt: Duration

    package init(_ pace: Campaign.Pace, at now: Duration) {
        self.init(tokens: Self.burst(pace.rate(after: .zero)), startedAt: now, filledAt: now)
    }

    /// Restores a bucket as it was stored.
    package init(tokens: Double, startedAt: Duration, filledAt: Duration) {
        self.tokens = tokens
        self.startedAt = startedAt
        self.filledAt = filledAt
    }

    /// Fills the bucket, and returns how many of `limit` may be taken, or the wait.
    package mutating func allowance(of pace: Campaign.Pace, at now: Duration, limit: Int) -> Allowance {
        if now - filledAt > Self.idleMax { self = PaceBucket(pace, at: now) }
        let rate = pace.rate(after: now - startedAt)
        let burst = Self.burst(rate)
        let filled = pace.count(within: now - startedAt) - pace.count(within: filledAt - startedAt)
        tokens = min(burst, tokens + max(0, filled))
        filledAt = max(now, filledAt)
        // Each lease is a transaction: wait for half a bucket instead of leasing a handful at a time.
        let enough = min(Double(limit), max(1, burst / 2))
        if tokens >= enough { return .now(min(limit, Int(tokens))) }
        return .after(.milliseconds(Int64(((enough - tokens) / rate * 1000).rounded(.up))))
    }

    /// Returns the allowance of several paces that apply together: the smallest number, or the longest wait.
    package static func allowance(
        of paces: [SharedPace], _ buckets: inout [PaceBucket], at now: Duration, limit: Int
    ) -> Allowance {
        var limit = limit
        var wait: Duration?
        for index in paces.indices {
            switch buckets[index].allowance(of: paces[index].pace, at: now, limit: limit) {
            case .now(let count): limit = min(limit, count)
            case .after(let time): wait = max(wait ?? .zero, time)
            }
        }
        return wait.map { .after($0) } ?? .now(limit)
    }

    package mutating func consume(_ count: Int) { tokens -= Double(count) }

    private static func burst(_ rate: Double) -> Double { max(1, rate * burstSeconds) }
}

/// A pace that all senders of a store share, in all processes.
package struct SharedPace: Hashable, Sendable {
    /// Senders that give the same name share the pace.
    package var name: String
    package var pace: Campaign.Pace

    package init(name: String, pace: Campaign.Pace) {
        self.name = name
        self.pace = pace
    }
}
