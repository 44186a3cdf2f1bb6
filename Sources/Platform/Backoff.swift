/// The waits between attempts at the same operation: each twice as long as the one before, up to a limit.
package struct Backoff: Sendable {
    package var first: Duration
    package var longest: Duration
    /// Returns a number from 0 to 1. It shortens a wait by up to a quarter, so that callers do not retry together.
    package var jitter: @Sendable () -> Double

    package init(
        first: Duration, longest: Duration, jitter: @escaping @Sendable () -> Double = { Double.random(in: 0...1) }
    ) {
        self.first = first
        self.longest = longest
        self.jitter = jitter
    }

    /// Returns the wait after this number of failures in a row, counted from 1.
    package func delay(afterFailures failures: Int) -> Duration {
        guard failures > 0 else { return .zero }
        let doublings = min(failures - 1, 16)
        let full = min(longest, first * (1 << doublings))
        return full * (1 - 0.25 * min(1, max(0, jitter())))
    }
}
