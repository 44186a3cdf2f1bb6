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
