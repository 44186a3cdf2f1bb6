import Model
import Synchronization

/// The breaker of one endpoint, for all runs and lanes that use it.
final class EndpointBreaker: Sendable {
    private let endpoint: String
    private let jitter: @Sendable () -> Double
    private let breaker = Mutex(CircuitBreaker())

    init(endpoint: String, jitter: @escaping @Sendable () -> Double) {
        self.endpoint = endpoint
        self.jitter = jitter
    }

    func allowance(at now: Timestamp) -> CircuitBreaker.Allowance {
        breaker.withLock { $0.allowance(at: now) }
    }

    /// Hears what the responses say about the endpoint; returns why to stop when it is down for good.
    func saw(_ signs: some Sequence<CircuitBreaker.Sign>, at now: Timestamp) -> RunControl.Halt? {
        let downSince = breaker.withLock { breaker in
            for sign in signs { breaker.saw(sign, at: now, jitter: jitter) }
            defer {
                // Whoever goes on with a run later has reason to think that it works again.
                if breaker.downSince != nil { breaker = CircuitBreaker() }
            }
            return breaker.downSince
        }
        return downSince.map { downSince in
            .unreachable(
                "\(endpoint) has answered nothing but errors since \(downSince.iso8601), or not at all; look at Apple's "
                    + "system status page and at the network, then run the same command again")
        }
    }
}
