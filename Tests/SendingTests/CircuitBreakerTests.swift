import APNs
import Model
@testable import Sending
import Store
import Testing

@Suite struct `Circuit breaker` {
    private static let noon = Timestamp(milliseconds: 1_800_000_000_000)
    private static let start = at(.zero)

    /// So long after the start; `set`: by how much somebody has set the wall clock meanwhile.
    private static func at(_ time: Duration, set: Duration = .zero) -> ClockReading {
        ClockReading(wall: noon + time + set, uptime: .seconds(1000) + time, boot: "b")
    }

    private func observe(
        _ breaker: inout CircuitBreaker, _ observation: CircuitBreaker.Observation, times: Int = 1,
        at now: ClockReading = start
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
        #expect(breaker.hold(at: Self.start) == nil)
        observe(&breaker, .failure, times: CircuitBreaker.failuresMin)
        #expect(breaker.allowance(at: Self.start) == .after(CircuitBreaker.delays[0]))
    }

    @Test func `after the pause a few are sent to see, and an answer closes it again`() {
        var breaker = CircuitBreaker()
        observe(&breaker, .failure, times: 1000)
        let later = Self.at(CircuitBreaker.delays[0])
        #expect(breaker.allowance(at: later) == .probe)
        #expect(breaker.allowance(at: later) == .after(.seconds(30)))
        observe(&breaker, .working, at: later)
        #expect(breaker.allowance(at: later) == .full)
        // From the beginning, then.
        observe(&breaker, .failure, times: CircuitBreaker.failuresMin, at: later)
        #expect(breaker.allowance(at: later) == .after(CircuitBreaker.delays[0]))
    }

    @Test func `an answer to what was on the wire closes it at once`() {
        var breaker = CircuitBreaker()
        observe(&breaker, .failure, times: 10)
        observe(&breaker, .working)
        #expect(breaker.allowance(at: Self.start) == .full)
    }

    @Test func `pauses grow, and when the longest did not help the endpoint is down`() {
        var breaker = CircuitBreaker()
        var time = Duration.zero
        observe(&breaker, .failure, times: 10)
        for delay in CircuitBreaker.delays {
            #expect(breaker.downSince == nil)
            #expect(breaker.allowance(at: Self.at(time)) == .after(delay))
            time += delay
            #expect(breaker.allowance(at: Self.at(time)) == .probe)
            observe(&breaker, .failure, at: Self.at(time))
        }
        #expect(breaker.downSince == Self.noon)
        #expect((.seconds(18 * 60) ... .seconds(25 * 60)).contains(time))
        #expect(CircuitBreaker.delays == CircuitBreaker.delays.sorted() && CircuitBreaker.delays.last == .seconds(300))
    }

    @Test(arguments: [Duration.seconds(3600), .seconds(-3600), .seconds(86_400)])
    func `somebody sets the wall clock: pauses are as long as they were`(set: Duration) {
        var breaker = CircuitBreaker()
        observe(&breaker, .failure, times: 10)
        #expect(breaker.allowance(at: Self.at(.seconds(1), set: set)) == .after(.milliseconds(600)))
        #expect(breaker.allowance(at: Self.at(.milliseconds(1600), set: set)) == .probe)
        #expect(breaker.allowance(at: Self.at(.seconds(2), set: set)) == .after(.milliseconds(29_600)))
    }

    @Test func `an answer that says when to come again opens it at once, and for as long`() {
        var breaker = CircuitBreaker()
        observe(&breaker, .failed(.init(status: 503, retryAfter: .seconds(120))))
        #expect(breaker.allowance(at: Self.start) == .after(.seconds(120)))
        // What was on the wire: a longer wait counts, a shorter does not, and neither does a failure without any.
        observe(&breaker, .failed(.init(status: 503, retryAfter: .seconds(300))), at: Self.at(.seconds(1)))
        observe(&breaker, .failed(.init(status: 503, retryAfter: .seconds(10))), at: Self.at(.seconds(2)))
        observe(&breaker, .failure, at: Self.at(.seconds(3)))
        #expect(breaker.allowance(at: Self.at(.seconds(300))) == .after(.seconds(1)))
        #expect(breaker.allowance(at: Self.at(.seconds(301))) == .probe)
        // Of a probe, too; never less than the level's own pause, never more than an hour.
        observe(&breaker, .failed(.init(status: 503, retryAfter: .seconds(86_400))), at: Self.at(.seconds(301)))
        #expect(breaker.allowance(at: Self.at(.seconds(301))) == .after(.seconds(3600)))
        #expect(breaker.allowance(at: Self.at(.seconds(3901))) == .probe)
        observe(&breaker, .failed(.init(status: 503, retryAfter: .seconds(1))), at: Self.at(.seconds(3901)))
        #expect(breaker.allowance(at: Self.at(.seconds(3901))) == .after(CircuitBreaker.delays[2]))
        observe(&breaker, .working, at: Self.at(.seconds(3902)))
        #expect(breaker.allowance(at: Self.at(.seconds(3902))) == .full)
    }

    @Test func `what an answer asks for holds although others are answered well`() {
        var breaker = CircuitBreaker()
        observe(&breaker, .working, times: 100)
        observe(&breaker, .failed(.init(status: 503, retryAfter: .seconds(600))))
        observe(&breaker, .working, times: 1000, at: Self.at(.seconds(1)))
        #expect(breaker.allowance(at: Self.at(.seconds(2))) == .after(.seconds(598)))
        #expect(breaker.allowance(at: Self.at(.seconds(600))) == .probe)
        // Where a part of the service asks again and again, the rest still works: it never counts as down.
        for period in 1...20 {
            let now = Self.at(.seconds(600) * period)
            _ = breaker.allowance(at: now)
            observe(&breaker, .failed(.init(status: 503, retryAfter: .seconds(600))), at: now)
            observe(&breaker, .working, times: 9, at: now)
            #expect(breaker.allowance(at: now) == .after(.seconds(600)))
            #expect(breaker.downSince == nil)
        }
        let end = Self.at(.seconds(600) * 21)
        #expect(breaker.allowance(at: end) == .probe)
        observe(&breaker, .working, at: end)
        #expect(breaker.allowance(at: end) == .full)
    }

    @Test func `while it is open it tells since when, what the last answer was, and when the next try is`() {
        var breaker = CircuitBreaker()
        observe(&breaker, .failed(.init(status: 500)), times: 4)
        observe(&breaker, .failed(.init(status: 503)), at: Self.at(.seconds(1)))
        let hold = CircuitBreaker.Hold(since: Self.noon, status: 503, nextTryAt: Self.noon + .milliseconds(2600))
        #expect(breaker.hold(at: Self.at(.seconds(1))) == hold)
        #expect(breaker.hold(at: Self.at(.seconds(2))) == hold)
        observe(&breaker, .failure, at: Self.at(.seconds(2)))
        #expect(breaker.hold(at: Self.at(.seconds(2)))?.status == nil)
        observe(&breaker, .working, at: Self.at(.seconds(3)))
        #expect(breaker.hold(at: Self.at(.seconds(3))) == nil)
    }

    @Test func `a probe that never comes back is followed by another`() {
        var breaker = CircuitBreaker()
        observe(&breaker, .failure, times: 5)
        #expect(breaker.allowance(at: Self.at(CircuitBreaker.delays[0])) == .probe)
        let deadline = CircuitBreaker.delays[0] + .seconds(30)
        #expect(breaker.allowance(at: Self.at(deadline - .seconds(1))) == .after(.seconds(1)))
        #expect(breaker.allowance(at: Self.at(deadline)) == .probe)
    }

    @Test(arguments: [(0.0, 30_000), (0.5, 33_000), (1.0, 36_000)])
    func `too many token updates pause at once for half a minute, with jitter`(jitter: Double, milliseconds: Int) {
        var breaker = CircuitBreaker()
        breaker.observe(.tokenUpdates, at: Self.start, jitter: { jitter })
        #expect(breaker.allowance(at: Self.start) == .after(.milliseconds(milliseconds)))
    }

    @Test(arguments: [
        (PushResult.answered(PushResponse(status: 200)), CircuitBreaker.Observation.working),
        (.answered(PushResponse(status: 410, reason: .unregistered)), .working),
        (.answered(PushResponse(status: 429, reason: .tooManyRequests)), .working),
        (.answered(PushResponse(status: 429, reason: .tooManyProviderTokenUpdates)), .tokenUpdates),
        (.answered(PushResponse(status: 400, reason: .other("New"))), .working),
        (.answered(PushResponse(status: 403, reason: .invalidProviderToken)), .credentialRefused),
        (.answered(PushResponse(status: 500, reason: .internalServerError)), .failed(.init(status: 500))),
        (
            .answered(PushResponse(status: 503, reason: .shutdown, retryAfter: .seconds(9))),
            .failed(.init(status: 503, retryAfter: .seconds(9)))
        ),
        (.answered(PushResponse(status: 502)), .failed(.init(status: 502))),
        (.unknown(.connectionLost("reset")), .failure), (.unknown(.deadline), .failure),
        (.cutOff(status: 410), .failed(.init(status: 410))), (.notSent(.stopped), .nothing),
        (.notSent(.streamRefused), .nothing),
    ])
    func `responses say whether the service works`(result: PushResult, observation: CircuitBreaker.Observation) {
        #expect(CircuitBreaker.Observation(OutcomePolicy.row(for: result), result) == observation)
    }

    @Test func `a refused credential lets single requests through until one is answered otherwise`() {
        var breaker = CircuitBreaker()
        observe(&breaker, .credentialRefused)
        #expect(breaker.isHeld && breaker.hold(at: Self.start) == nil)
        #expect(breaker.allowance(at: Self.start) == .single)
        #expect(breaker.allowance(at: Self.start) == .after(.seconds(30)))
        // Nothing was sent after all, or it failed on the way: the next one may.
        breaker.probeUnused(at: Self.start)
        #expect(breaker.allowance(at: Self.start) == .single)
        observe(&breaker, .nothing)
        #expect(breaker.allowance(at: Self.start) == .single)
        observe(&breaker, .failure)
        #expect(breaker.allowance(at: Self.start) == .single)
        observe(&breaker, .credentialRefused)
        #expect(breaker.allowance(at: Self.start) == .single)
        // One that was never answered holds up nothing for longer.
        #expect(breaker.allowance(at: Self.at(.seconds(30))) == .single)
        observe(&breaker, .working)
        #expect(!breaker.isHeld && breaker.allowance(at: Self.start) == .full)
    }

    @Test func `a run that continues begins with one request, unless the endpoint has answered here`() {
        let fresh = EndpointBreaker(endpoint: "api.push.apple.com:443", jitter: { 0 })
        fresh.probeFirst(at: Self.start)
        #expect(fresh.allowance(at: Self.start) == .single)
        #expect(fresh.observe([.working], at: Self.start).isFreed)
        fresh.probeFirst(at: Self.start)
        #expect(fresh.allowance(at: Self.start) == .full)
        #expect(!fresh.observe([.working], at: Self.start).isFreed)
    }

    @Test func `who was to try the service and had nothing to send leaves the turn to the next`() {
        var breaker = CircuitBreaker()
        observe(&breaker, .failure, times: CircuitBreaker.failuresMin)
        let later = Self.at(CircuitBreaker.delays[0])
        #expect(breaker.allowance(at: later) == .probe)
        breaker.probeUnused(at: later)
        #expect(breaker.allowance(at: later) == .probe)
        breaker.probeUnused(at: later)
        observe(&breaker, .failure, at: later)
        #expect(breaker.allowance(at: later) == .probe, "an answer from before says nothing more")
        observe(&breaker, .failure, at: later)
        #expect(breaker.allowance(at: later) == .after(CircuitBreaker.delays[1]))
    }

    @Test func `what another process was to wait for is waited for, and then tried with a few`() {
        var breaker = CircuitBreaker()
        let hold = CircuitBreaker.Hold(since: Self.noon - .seconds(5), status: 503, nextTryAt: Self.noon + .seconds(60))
        breaker.takeOver(hold, at: Self.start)
        #expect(breaker.hold(at: Self.start) == hold)
        #expect(breaker.allowance(at: Self.start) == .after(.seconds(60)))
        let later = Self.at(.seconds(60))
        #expect(breaker.allowance(at: later) == .probe)
        observe(&breaker, .failure, at: later)
        #expect(breaker.allowance(at: later) == .after(CircuitBreaker.delays[1]))
    }

    @Test func `what is over, or past all reason, or known better here is not taken over`() {
        let over = CircuitBreaker.Hold(since: Self.noon - .seconds(5), status: 503, nextTryAt: Self.noon)
        var breaker = CircuitBreaker()
        breaker.takeOver(over, at: Self.start)
        #expect(breaker.allowance(at: Self.start) == .full)
        var far = over
        far.nextTryAt = Self.noon + .seconds(86_400)
        breaker.takeOver(far, at: Self.start)
        #expect(breaker.allowance(at: Self.start) == .after(RetryAfter.waitMax))
        let heard = EndpointBreaker(endpoint: "api.push.apple.com:443", jitter: { 0 })
        _ = heard.observe([.working], at: Self.start)
        heard.takeOver(far, at: Self.start)
        #expect(heard.allowance(at: Self.start) == .full)
    }

    @Test func `an endpoint that wants fewer provider tokens to the end says of which key`() throws {
        let breaker = EndpointBreaker(
            endpoint: "api.push.apple.com:443", credential: "key ABC123DEFG of team DEF123GHIJ", jitter: { 0 })
        var now = Self.start
        var halt: StopReason?
        for turn in 1...20 where halt == nil {
            halt = breaker.observe([.tokenUpdates], at: now).stop
            now = Self.at(.seconds(901) * turn)
            _ = breaker.allowance(at: now)
        }
        guard case .unreachable(let words) = try #require(halt) else { return #expect(Bool(false), "\(halt as Any)") }
        for word in ["api.push.apple.com:443", "TooManyProviderTokenUpdates", "key ABC123DEFG of team DEF123GHIJ"] {
            #expect(words.contains(word), "\(words)")
        }
    }
}
