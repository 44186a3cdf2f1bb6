import Model
import Synchronization

/// Holds a run to its `pace`: a bucket that fills at the given rate and holds a quarter of a second's worth.
final class Pacer: Sendable {
    enum Allowance: Hashable {
        case now(Int)
        case after(Duration)
    }

    private struct State {
        var tokens: Double
        var filledAt: Timestamp?
    }

    private let rate: Double
    private let burst: Double
    private let state: Mutex<State>

    /// - Parameter rate: pushes per second, above 0.
    init(rate: Double) {
        self.rate = rate
        burst = max(1, rate / 4)
        state = Mutex(State(tokens: max(1, rate / 4)))
    }

    func allowance(at now: Timestamp, limit: Int) -> Allowance {
        state.withLock { state in
            let passed = state.filledAt.map { max(.zero, now - $0) } ?? .zero
            state.tokens = min(burst, state.tokens + passed.inSeconds * rate)
            state.filledAt = now
            // A handful at a time would mean a transaction for each: wait for half a bucket.
            let enough = min(Double(limit), max(1, burst / 2))
            if state.tokens >= enough { return .now(min(limit, Int(state.tokens))) }
            return .after(.milliseconds(Int64(((enough - state.tokens) / rate * 1000).rounded(.up))))
        }
    }

    func leased(_ count: Int, at now: Timestamp) {
        state.withLock { $0.tokens -= Double(count) }
    }
}
