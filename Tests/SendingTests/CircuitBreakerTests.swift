import APNs
import Model
@testable import Sending
import Testing

@Suite struct `Circuit breaker` {
    private static let start = Timestamp(milliseconds: 1_800_000_000_000)

    private func observe(
        _ breaker: inout CircuitBreaker, _ observation: CircuitBreaker.Observation, times: Int = 1,
        at now: Timestamp = start
    ) {
        for _ in 0..<times { breaker.observe(observation, at: now, jitter: { 0 }) }
    }

    @Test func `a few failures change nothing, several in a row open it`() {
        var breaker = CircuitBreaker()
        for _ in 0..<100 {
            observe(&breaker, .failure, times: CircuitBreaker.failuresMin - 1)
            observe(&breaker, .working)
        }
        #expect(breaker.allowance(at: Self.start) == .full)
        observe(&breaker, .failure, times: CircuitBreaker.failuresMin)
        #expect(breaker.allowance(at: Self.start) == .after(Self.start + .seconds(2)))
    }

    @Test func `after the pause a few are sent to see, and an answer closes it again`() {
        var breaker = CircuitBreaker()
        observe(&breaker, .failure, times: 1000)
        let later = Self.start + .seconds(2)
        #expect(breaker.allowance(at: later) == .probe)
        #expect(breaker.allowance(at: later) == .after(later + .seconds(30)))
        observe(&breaker, .working, at: later)
        #expect(breaker.allowance(at: later) == .full)
        // From the beginning, then.
        observe(&breaker, .failure, times: CircuitBreaker.failuresMin, at: later)
        #expect(breaker.allowance(at: later) == .after(later + .seconds(2)))
    }

    @Test func `an answer to what was on the wire closes it at once`() {
        var breaker = CircuitBreaker()
        observe(&breaker, .failure, times: 10)
        observe(&breaker, .working)
        #expect(breaker.allowance(at: Self.start) == .full)
    }

    @Test func `pauses grow, and when the longest did not help the endpoint is down`() {
        var breaker = CircuitBreaker()
        var now = Self.start
        observe(&breaker, .failure, times: 10)
        for delay in CircuitBreaker.delays {
            #expect(breaker.downSince == nil)
            guard case .after(let moment) = breaker.allowance(at: now) else {
                Issue.record("it is closed")
                return
            }
            #expect(moment == now + delay)
            now = moment
            #expect(breaker.allowance(at: now) == .probe)
            observe(&breaker, .failure, at: now)
        }
        #expect(breaker.downSince == Self.start)
    }

    @Test func `a probe that never comes back is followed by another`() {
        var breaker = CircuitBreaker()
        observe(&breaker, .failure, times: 5)
        #expect(breaker.allowance(at: Self.start + .seconds(2)) == .probe)
        #expect(breaker.allowance(at: Self.start + .seconds(31)) == .after(Self.start + .seconds(32)))
        #expect(breaker.allowance(at: Self.start + .seconds(32)) == .probe)
    }

    @Test(arguments: [(0.0, 30_000), (0.5, 33_000), (1.0, 36_000)])
    func `too many token updates pause at once for half a minute, with jitter`(jitter: Double, milliseconds: Int) {
        var breaker = CircuitBreaker()
        breaker.observe(.tokenUpdates, at: Self.start, jitter: { jitter })
        #expect(breaker.allowance(at: Self.start) == .after(Self.start + .milliseconds(milliseconds)))
    }

    @Test(arguments: [
        (PushResult.answered(PushResponse(status: 200)), CircuitBreaker.Observation.working),
        (.answered(PushResponse(status: 410, reason: .unregistered)), .working),
        (.answered(PushResponse(status: 429, reason: .tooManyRequests)), .working),
        (.answered(PushResponse(status: 429, reason: .tooManyProviderTokenUpdates)), .tokenUpdates),
        (.answered(PushResponse(status: 500, reason: .internalServerError)), .failure),
        (.answered(PushResponse(status: 503, reason: .shutdown)), .failure),
        (.answered(PushResponse(status: 502)), .failure),
        (.unknown(.connectionLost("reset")), .failure), (.unknown(.deadline), .failure),
        (.notSent(.stopped), .nothing), (.notSent(.streamRefused), .nothing),
    ])
    func `responses say whether the service works`(result: PushResult, observation: CircuitBreaker.Observation) {
        #expect(CircuitBreaker.Observation(OutcomePolicy.row(for: result), result) == observation)
    }
}
