import APNs
import Model
@testable import Sending
import Testing

@Suite struct `Endpoint breaker` {
    private static let start = Timestamp(milliseconds: 1_800_000_000_000)

    private func saw(
        _ breaker: inout CircuitBreaker, _ sign: CircuitBreaker.Sign, times: Int = 1, at now: Timestamp = start
    ) {
        for _ in 0..<times { breaker.saw(sign, at: now, jitter: { 0 }) }
    }

    @Test func `a few troubles are bad luck, several in a row hold everybody back`() {
        var breaker = CircuitBreaker()
        for _ in 0..<100 {
            saw(&breaker, .trouble, times: CircuitBreaker.troublesMin - 1)
            saw(&breaker, .working)
        }
        #expect(breaker.allowance(at: Self.start) == .full)
        saw(&breaker, .trouble, times: CircuitBreaker.troublesMin)
        #expect(breaker.allowance(at: Self.start) == .after(Self.start + .seconds(2)))
    }

    @Test func `after the pause a few are sent to see, and an answer opens it again`() {
        var breaker = CircuitBreaker()
        saw(&breaker, .trouble, times: 1000)
        let later = Self.start + .seconds(2)
        #expect(breaker.allowance(at: later) == .probe)
        #expect(breaker.allowance(at: later) == .after(later + .seconds(30)))
        saw(&breaker, .working, at: later)
        #expect(breaker.allowance(at: later) == .full)
        // From the beginning, then.
        saw(&breaker, .trouble, times: CircuitBreaker.troublesMin, at: later)
        #expect(breaker.allowance(at: later) == .after(later + .seconds(2)))
    }

    @Test func `an answer to what was on the wire opens it at once`() {
        var breaker = CircuitBreaker()
        saw(&breaker, .trouble, times: 10)
        saw(&breaker, .working)
        #expect(breaker.allowance(at: Self.start) == .full)
    }

    @Test func `pauses grow, and when the longest did not help the endpoint is down`() {
        var breaker = CircuitBreaker()
        var now = Self.start
        saw(&breaker, .trouble, times: 10)
        for delay in CircuitBreaker.delays {
            #expect(breaker.downSince == nil)
            guard case .after(let moment) = breaker.allowance(at: now) else {
                Issue.record("it is open")
                return
            }
            #expect(moment == now + delay)
            now = moment
            #expect(breaker.allowance(at: now) == .probe)
            saw(&breaker, .trouble, at: now)
        }
        #expect(breaker.downSince == Self.start)
    }

    @Test func `a probe that never comes back is followed by another`() {
        var breaker = CircuitBreaker()
        saw(&breaker, .trouble, times: 5)
        #expect(breaker.allowance(at: Self.start + .seconds(2)) == .probe)
        #expect(breaker.allowance(at: Self.start + .seconds(31)) == .after(Self.start + .seconds(32)))
        #expect(breaker.allowance(at: Self.start + .seconds(32)) == .probe)
    }

    @Test(arguments: [(0.0, 30_000), (0.5, 33_000), (1.0, 36_000)])
    func `too many token updates pause at once for half a minute, with jitter`(jitter: Double, milliseconds: Int) {
        var breaker = CircuitBreaker()
        breaker.saw(.tokenUpdates, at: Self.start, jitter: { jitter })
        #expect(breaker.allowance(at: Self.start) == .after(Self.start + .milliseconds(milliseconds)))
    }

    @Test(arguments: [
        (PushResult.answered(PushResponse(status: 200)), CircuitBreaker.Sign.working),
        (.answered(PushResponse(status: 410, reason: .unregistered)), .working),
        (.answered(PushResponse(status: 429, reason: .tooManyRequests)), .working),
        (.answered(PushResponse(status: 429, reason: .tooManyProviderTokenUpdates)), .tokenUpdates),
        (.answered(PushResponse(status: 500, reason: .internalServerError)), .trouble),
        (.answered(PushResponse(status: 503, reason: .shutdown)), .trouble),
        (.answered(PushResponse(status: 502)), .trouble),
        (.unknown(.connectionLost("reset")), .trouble), (.unknown(.deadline), .trouble),
        (.notSent(.stopped), .nothing), (.notSent(.streamRefused), .nothing),
    ])
    func `responses say whether the service works`(result: PushResult, sign: CircuitBreaker.Sign) {
        #expect(CircuitBreaker.Sign(OutcomePolicy.row(for: result), result) == sign)
    }
}
