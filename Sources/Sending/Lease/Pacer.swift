package import Model
import Synchronization

/// Holds a run, or several that share it, to a `pace`: a token bucket that fills at the given rate and holds a quarter of
/// a second's worth. With a ramp the rate grows evenly from a tenth to the whole, from the first push of this process on:
/// a run that goes on after a stop ramps up again. Its times are ``WallClock/uptime``: setting the wall clock neither
/// fills the bucket nor stalls it.
package final class Pacer: Sendable {
    enum Allowance: Hashable {
        case now(Int)
        case after(Duration)
    }

    private struct State {
        var tokens: Double
        var startedAt: Duration?
        var filledAt: Duration?
    }

    /// What all of them allow together.
    static func allowance(of pacers: [Pacer], at now: Duration, limit: Int) -> Allowance {
        pacers.reduce(.now(limit)) { allowance, pacer in
            switch (allowance, pacer.allowance(at: now, limit: limit)) {
            case (.now(let left), .now(let right)): .now(min(left, right))
            case (.after(let left), .after(let right)): .after(max(left, right))
            case (.after(let wait), .now), (.now, .after(let wait)): .after(wait)
            }
        }
    }

    private static let burstSeconds = 0.25

    private let pace: Campaign.Pace
    private let state: Mutex<State>

    package init(_ pace: Campaign.Pace) {
        self.pace = pace
        state = Mutex(State(tokens: Self.burst(pace.rate(after: .zero))))
    }

    func allowance(at now: Duration, limit: Int) -> Allowance {
        state.withLock { state in
            let start = state.startedAt ?? now
            state.startedAt = start
            let rate = pace.rate(after: now - start)
            let burst = Self.burst(rate)
            let filledAt = state.filledAt ?? now
            let filled = pace.count(within: now - start) - pace.count(within: filledAt - start)
            state.tokens = min(burst, state.tokens + max(0, filled))
            state.filledAt = max(now, filledAt)
            // Each lease is a transaction: wait for half a bucket instead of leasing a handful at a time.
            let enough = min(Double(limit), max(1, burst / 2))
            if state.tokens >= enough { return .now(min(limit, Int(state.tokens))) }
            return .after(.milliseconds(Int64(((enough - state.tokens) / rate * 1000).rounded(.up))))
        }
    }

    func leased(_ count: Int) {
        state.withLock { $0.tokens -= Double(count) }
    }

    private static func burst(_ rate: Double) -> Double { max(1, rate * burstSeconds) }
}
