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
        #expect(breaker.allowance(at: Self.start) == .after(Self.start + CircuitBreaker.delays[0]))
    }

    @Test func `after the pause a few are sent to see, and an answer closes it again`() {
        var breaker = CircuitBreaker()
        observe(&breaker, .failure, times: 1000)
        let later = Self.start + CircuitBreaker.delays[0]
        #expect(breaker.allowance(at: later) == .probe)
        #expect(breaker.allowance(at: later) == .after(later + .seconds(30)))
        observe(&breaker, .working, at: later)
        #expect(breaker.allowance(at: later) == .full)
        // From the beginning, then.
        observe(&breaker, .failure, times: CircuitBreaker.failuresMin, at: later)
        #expect(breaker.allowance(at: later) == .after(later + CircuitBreaker.delays[0]))
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
        #expect((.seconds(18 * 60) ... .seconds(25 * 60)).contains(now - Self.start))
        #expect(CircuitBreaker.delays == CircuitBreaker.delays.sorted() && CircuitBreaker.delays.last == .seconds(300))
    }

    @Test func `an answer that says when to come again opens it at once, and for as long`() {
        var breaker = CircuitBreaker()
        observe(&breaker, .failed(.init(status: 503, retryAfter: .seconds(120))))
        #expect(breaker.allowance(at: Self.start) == .after(Self.start + .seconds(120)))
        // What was on the wire: a longer wait counts, a shorter does not, and neither does a failure without any.
        observe(&breaker, .failed(.init(status: 503, retryAfter: .seconds(300))), at: Self.start + .seconds(1))
        observe(&breaker, .failed(.init(status: 503, retryAfter: .seconds(10))), at: Self.start + .seconds(2))
        observe(&breaker, .failure, at: Self.start + .seconds(3))
        let until = Self.start + .seconds(301)
        #expect(breaker.allowance(at: until - .seconds(1)) == .after(until))
        #expect(breaker.allowance(at: until) == .probe)
        // Of a probe, too; never less than the level's own pause, never more than an hour.
        observe(&breaker, .failed(.init(status: 503, retryAfter: .seconds(86_400))), at: until)
        #expect(breaker.allowance(at: until) == .after(until + .seconds(3600)))
        let next = until + .seconds(3600)
        #expect(breaker.allowance(at: next) == .probe)
        observe(&breaker, .failed(.init(status: 503, retryAfter: .seconds(1))), at: next)
        #expect(breaker.allowance(at: next) == .after(next + CircuitBreaker.delays[2]))
        observe(&breaker, .working, at: next)
        #expect(breaker.allowance(at: next) == .full)
    }

    @Test func `a probe that never comes back is followed by another`() {
        var breaker = CircuitBreaker()
        observe(&breaker, .failure, times: 5)
        #expect(breaker.allowance(at: Self.start + CircuitBreaker.delays[0]) == .probe)
        let deadline = Self.start + CircuitBreaker.delays[0] + .seconds(30)
        #expect(breaker.allowance(at: deadline - .seconds(1)) == .after(deadline))
        #expect(breaker.allowance(at: deadline) == .probe)
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
        (.answered(PushResponse(status: 400, reason: .other("New"))), .working),
        (.answered(PushResponse(status: 500, reason: .internalServerError)), .failed(.init(status: 500))),
        (
            .answered(PushResponse(status: 503, reason: .shutdown, retryAfter: .seconds(9))),
            .failed(.init(status: 503, retryAfter: .seconds(9)))
        ),
        (.answered(PushResponse(status: 502)), .failed(.init(status: 502))),
        (.unknown(.connectionLost("reset")), .failure), (.unknown(.deadline), .failure),
        (.notSent(.stopped), .nothing), (.notSent(.streamRefused), .nothing),
    ])
    func `responses say whether the service works`(result: PushResult, observation: CircuitBreaker.Observation) {
        #expect(CircuitBreaker.Observation(OutcomePolicy.row(for: result), result) == observation)
    }

    @Test func `an endpoint that wants fewer provider tokens to the end says of which key`() throws {
        let breaker = EndpointBreaker(
            endpoint: "api.push.apple.com:443", credential: "key ABC123DEFG of team DEF123GHIJ", jitter: { 0 })
        var now = Self.start
        var halt: RunControl.Halt?
        for _ in 0..<20 where halt == nil {
            halt = breaker.observe([.tokenUpdates], at: now)
            now = now + .seconds(901)
            _ = breaker.allowance(at: now)
        }
        guard case .unreachable(let words) = try #require(halt) else { return #expect(Bool(false), "\(halt as Any)") }
        for word in ["api.push.apple.com:443", "TooManyProviderTokenUpdates", "key ABC123DEFG of team DEF123GHIJ"] {
            #expect(words.contains(word), "\(words)")
        }
    }
}
