/// How long a delivery waits before its next attempt.
package struct Backoff: Sendable {
    /// From 0 to 1, one for each question.
    private let jitter: @Sendable () -> Double

    package init(jitter: @escaping @Sendable () -> Double) {
        self.jitter = jitter
    }

    /// - Parameter attempt: the attempt that has just failed, from 1.
    package func delay(_ wait: OutcomePolicy.Wait, afterAttempt attempt: Int) -> Duration {
        let steps: [Duration] =
            switch wait {
            case .none: [.zero]
            case .device: [.seconds(30), .seconds(60), .seconds(120), .seconds(300), .seconds(900)]
            // The first try after a 500 comes soon: often only the first request after idle time is refused.
            // From then on Apple asks for a quarter of an hour (`apns-protocol.md` section 7).
            case .credential: [.seconds(30), .seconds(60), .seconds(120), .seconds(300)]
            case .service: [.seconds(2), .seconds(60), .seconds(300), .seconds(900)]
            }
        let step = steps[min(max(attempt, 1), steps.count) - 1]
        return step + step * (0.2 * jitter())
    }
}
