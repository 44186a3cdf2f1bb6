import APNs
@testable import Engine
import Model
import Testing

@Suite struct `Endpoint brake` {
    private static let start = Timestamp(milliseconds: 1_800_000_000_000)

    private func saw(
        _ brake: inout EndpointBrake, _ sign: EndpointBrake.Sign, times: Int = 1, at now: Timestamp = start
    ) {
        for _ in 0..<times { brake.saw(sign, at: now, chance: { 0 }) }
    }

    @Test func `a few troubles are bad luck, several in a row hold everybody back`() {
        var brake = EndpointBrake()
        for _ in 0..<100 {
            saw(&brake, .trouble, times: EndpointBrake.troublesMin - 1)
            saw(&brake, .working)
        }
        #expect(brake.allowance(at: Self.start) == .full)
        saw(&brake, .trouble, times: EndpointBrake.troublesMin)
        #expect(brake.allowance(at: Self.start) == .after(Self.start + .seconds(2)))
    }

    @Test func `after the pause a few are sent to see, and an answer opens it again`() {
        var brake = EndpointBrake()
        saw(&brake, .trouble, times: 1000)
        let later = Self.start + .seconds(2)
        #expect(brake.allowance(at: later) == .probe)
        #expect(brake.allowance(at: later) == .after(later + .seconds(30)))
        saw(&brake, .working, at: later)
        #expect(brake.allowance(at: later) == .full)
        // From the beginning, then.
        saw(&brake, .trouble, times: EndpointBrake.troublesMin, at: later)
        #expect(brake.allowance(at: later) == .after(later + .seconds(2)))
    }

    @Test func `an answer to what was on the wire opens it at once`() {
        var brake = EndpointBrake()
        saw(&brake, .trouble, times: 10)
        saw(&brake, .working)
        #expect(brake.allowance(at: Self.start) == .full)
    }

    @Test func `pauses grow, and when the longest did not help the endpoint is down`() {
        var brake = EndpointBrake()
        var now = Self.start
        saw(&brake, .trouble, times: 10)
        for delay in EndpointBrake.delays {
            #expect(brake.downSince == nil)
            guard case .after(let moment) = brake.allowance(at: now) else {
                Issue.record("it is open")
                return
            }
            #expect(moment == now + delay)
            now = moment
            #expect(brake.allowance(at: now) == .probe)
            saw(&brake, .trouble, at: now)
        }
        #expect(brake.downSince == Self.start)
    }

    @Test func `a probe that never comes back is followed by another`() {
        var brake = EndpointBrake()
        saw(&brake, .trouble, times: 5)
        #expect(brake.allowance(at: Self.start + .seconds(2)) == .probe)
        #expect(brake.allowance(at: Self.start + .seconds(31)) == .after(Self.start + .seconds(32)))
        #expect(brake.allowance(at: Self.start + .seconds(32)) == .probe)
    }

    @Test(arguments: [(0.0, 30_000), (0.5, 33_000), (1.0, 36_000)])
    func `too many token updates pause at once for half a minute, with jitter`(chance: Double, milliseconds: Int) {
        var brake = EndpointBrake()
        brake.saw(.tokenUpdates, at: Self.start, chance: { chance })
        #expect(brake.allowance(at: Self.start) == .after(Self.start + .milliseconds(milliseconds)))
    }

    @Test(arguments: [
        (PushResult.answered(PushResponse(status: 200)), EndpointBrake.Sign.working),
        (.answered(PushResponse(status: 410, reason: .unregistered)), .working),
        (.answered(PushResponse(status: 429, reason: .tooManyRequests)), .working),
        (.answered(PushResponse(status: 429, reason: .tooManyProviderTokenUpdates)), .tokenUpdates),
        (.answered(PushResponse(status: 500, reason: .internalServerError)), .trouble),
        (.answered(PushResponse(status: 503, reason: .shutdown)), .trouble),
        (.answered(PushResponse(status: 502)), .trouble),
        (.unknown(.connectionLost("reset")), .trouble), (.unknown(.deadline), .trouble),
        (.notSent(.stopped), .nothing), (.notSent(.streamRefused), .nothing),
    ])
    func `responses say whether the service works`(result: PushResult, sign: EndpointBrake.Sign) {
        #expect(EndpointBrake.Sign(OutcomePolicy.row(for: result), result) == sign)
    }
}
