import Model
import Store
import Testing

@Suite struct `The heartbeats of a sender` {
    @Test(arguments: [(0.9, true), (1.05, true), (1.2, false), (2.0, false)])
    func `keep its trust window open up to three round trips of 300 ms`(seconds: Double, isOpen: Bool) {
        let duration = Duration.milliseconds(Int64(seconds * 1_000))
        #expect(SenderTrust.staysOpen(withBeatsOf: duration) == isOpen)
        // As they follow one another: the next response comes before the window of the last heartbeat ends.
        var began = Duration.milliseconds(10_250)
        var gap = Duration.zero
        for _ in 0..<20 {
            let answered = began + duration
            let next = answered + SenderTrust.pause(since: began, now: answered)
            gap = max(gap, next + duration - began)
            began = next
        }
        #expect((gap <= SenderTrust.window) == isOpen || isOpen == false)
    }

    @Test func `come once a second where the store answers fast, at the same moments in all runs`() {
        for milliseconds in [0, 3, 120, 249] {
            let began = Duration.milliseconds(7_000 + milliseconds)
            let pause = SenderTrust.pause(since: began, now: began + .milliseconds(5))
            let next = began + .milliseconds(5) + pause
            #expect(next.wholeMilliseconds % 250 == 0)
            #expect(next - began >= .milliseconds(950) && next - began <= .milliseconds(1_250))
        }
        // A sleep that ends a little late changes nothing.
        let late = Duration.milliseconds(8_003)
        #expect(late + SenderTrust.pause(since: late, now: late) == .milliseconds(9_000))
    }

    @Test func `make it too slow at once at the start, later by two in a row, and fast again by two`() {
        let (fast, slow) = (Duration.milliseconds(20), Duration.milliseconds(1_500))
        func judgements(_ beats: [Duration]) -> [Bool] {
            var pace = HeartbeatPace()
            return beats.enumerated().map { second, beat in
                pace.note(beat, at: .seconds(second))
                return pace.isTooSlow == true
            }
        }
        #expect(judgements([slow, fast, slow, fast, fast, slow]) == [true, true, true, true, false, false])
        #expect(judgements([fast, slow, fast, slow, slow]) == [false, false, false, false, true])
        var pace = HeartbeatPace()
        let changes = [fast, slow, slow, slow].enumerated().map { pace.note($1, at: .seconds($0)) }
        #expect(changes == [false, false, true, false] && pace.since == .seconds(2))
    }
}

@Suite struct `The share of a sender` {
    @Test func `is a whole lease in the middle of a run, and for a sender that is alone`() {
        #expect(LeaseShare.size(atMost: 1_000, pending: 100_000, senders: 3, rate: 50) == 1_000)
        #expect(LeaseShare.size(atMost: 1_000, pending: 10, senders: 1, rate: 50) == 1_000)
    }

    @Test func `shrinks as the run nears its end, and with the rate of the sender`() {
        #expect(LeaseShare.size(atMost: 1_000, pending: 6_000, senders: 3, rate: nil) == 500)
        #expect(LeaseShare.size(atMost: 1_000, pending: 6_000, senders: 3, rate: 120) == 120)
        #expect(LeaseShare.size(atMost: 1_000, pending: 6_000, senders: 3, rate: 0) == LeaseShare.least)
        #expect(LeaseShare.size(atMost: 1_000, pending: 0, senders: 3, rate: 5_000) == LeaseShare.least)
        // A caller with little room gets no more than that.
        #expect(LeaseShare.size(atMost: 7, pending: 0, senders: 3, rate: 5_000) == 7)
    }

    @Test(arguments: [(4_000, 100.0, true), (190, 100, false), (100, 0, false), (200, 0, true)])
    func `is too much where it lasts longer than two seconds`(held: Int, rate: Double, isTooMuch: Bool) {
        #expect(LeaseShare.isTooMuch(held: held, rate: rate) == isTooMuch)
    }
}

@Suite struct `A sender joins` {
    private static let noon = Timestamp(milliseconds: 1_800_000_000_000)

    private func run(_ pending: Int, isFrozen: Bool = true, age: Int = 60, isTest: Bool = false) -> Run {
        let definition = RunDefinition(
            campaign: Campaign(name: "c", topic: "t", pushType: .alert, template: "t"), template: Template(name: "t"),
            variables: [:], plannedAt: Self.noon)
        var run = Run(
            id: 1, campaign: "c", occurrence: "o", definition: definition, state: .running, isTest: isTest,
            createdAt: Self.noon, startedAt: Self.noon - .seconds(age))
        run.isFrozen = isFrozen
        run.counts.pending = pending
        return run
    }

    private func joins(_ runs: Run..., isIdle: Bool) -> [Bool] {
        var policy = JoinPolicy(isIdle: isIdle, now: Self.noon)
        return runs.map { policy.joins($0) }
    }

    @Test func `runs with enough for all, also while it has others`() {
        #expect(joins(run(4_000), run(0, isFrozen: false), run(3_999), isIdle: false) == [true, true, false])
    }

    @Test func `whatever is left when it has nothing to do, a run at a time`() {
        #expect(joins(run(10), run(700), run(700), isIdle: true) == [false, true, false])
        #expect(joins(run(700, age: 1), run(700, isTest: true), isIdle: true) == [false, false])
    }
}
