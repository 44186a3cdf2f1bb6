import Model
import Store
import Testing

struct RollingWindowTests {
    private static let budget = Configuration.SilentBudget(limit: 2, window: .seconds(60))

    @Test(arguments: [(-61, false), (-60, false), (-59, true), (0, true), (9, true)])
    func `a push counts until its outcome has left the window`(secondsAgo: Int, counts: Bool) {
        #expect(RollingWindow(Self.budget, at: noon).counts(noon + .seconds(secondsAgo)) == counts)
    }

    @Test func `a push in flight counts, and may end as late as now`() {
        let window = RollingWindow(Self.budget, at: noon)
        #expect(window.counts(nil))
        #expect(
            window.decide(ends: [nil, nil], expiresAt: nil) == .wait(until: noon + .seconds(60), for: .silentBudget))
    }

    /// The oldest but limit - 1 decides; more than the limit may be there after it was lowered.
    @Test(
        arguments: [
            ([-50, -20], 10), ([-20, -50], 10), ([-50, -40, -20], 20), ([-70, -50, -20], 10),
        ] as [([Int], Int)])
    func `a slot is free once all but limit - 1 have left`(ends: [Int], free: Int) {
        let decision = RollingWindow(Self.budget, at: noon).decide(
            ends: ends.map { noon + .seconds($0) }, expiresAt: nil)
        #expect(decision == .wait(until: noon + .seconds(free), for: .silentBudget))
    }

    @Test(arguments: [(9, LeaseDecision.suppress(.silentBudget)), (10, .suppress(.silentBudget))])
    func `a slot at the expiry is too late`(seconds: Int, expected: LeaseDecision) {
        let decision = RollingWindow(Self.budget, at: noon).decide(
            ends: [noon - .seconds(50), noon], expiresAt: noon + .seconds(seconds))
        #expect(decision == expected)
    }

    @Test func `a budget of none never has a slot`() {
        let window = RollingWindow(Configuration.SilentBudget(limit: 0, window: .seconds(60)), at: noon)
        #expect(window.decide(ends: [], expiresAt: nil) == .suppress(.silentBudget))
        #expect(window.isFull(0))
    }

    /// Seconds from now: when the store was restored, what was sent since, and when a slot is free.
    @Test(
        arguments: [
            (-50, [], 10), (-50, [-70], 10), (-50, [-40], 10), (-50, [-40, -30], 20), (-1, [-40, -30], 59),
        ] as [(Int, [Int], Int)])
    func `a restored store counts the time it knows nothing of as full`(restored: Int, ends: [Int], free: Int) {
        let gap = RestoreGap(madeAt: noon - .seconds(3600), restoredAt: noon + .seconds(restored))
        let window = RollingWindow(Self.budget, at: noon, gap: gap)
        let ends = ends.map { Optional(noon + .seconds($0)) }
        let moment = noon + .seconds(free)
        #expect(window.isFull(0))
        #expect(window.decide(ends: ends, expiresAt: nil) == .wait(until: moment, for: .silentBudget))
        #expect(window.decide(ends: ends, expiresAt: moment) == .suppress(.silentBudget))
        let later = RollingWindow(Self.budget, at: moment, gap: gap)
        #expect(later.decide(ends: ends, expiresAt: nil) == .send(until: nil))
    }

    @Test func `a slot is free once the window holds nothing of the time before a restore`() {
        let gap = RestoreGap(madeAt: noon - .seconds(3600), restoredAt: noon - .seconds(60))
        let window = RollingWindow(Self.budget, at: noon, gap: gap)
        #expect(window.decide(ends: [], expiresAt: nil) == .send(until: nil))
        #expect(!window.isFull(0) && window.isFull(2))
    }

    @Test func `what is forgotten counted for no push that still counts`() {
        let window = RollingWindow(Self.budget, at: noon)
        let oldestThatCounts = RollingWindow(Self.budget, at: window.opensAt + .milliseconds(1))
        #expect(!oldestThatCounts.counts(window.forgottenUpTo))
    }

    // MARK: Somebody sets the wall clock

    /// Seconds from now: when the push ended by the clock of that time, and what counts of it.
    @Test(
        arguments: [
            // Set back by an hour: what has ended is in the future, and counts.
            ([(0, -3600)], 3590, true), ([(0, -3600)], -59, true), ([(0, -3600)], -60, false),
            // Set forward by an hour, ten seconds ago: what had ended 50 s before is a minute old, not more.
            ([(-3610, 3600)], -3659, true), ([(-3610, 3600)], -3660, false),
            // What ended after it is by the new clock.
            ([(-3610, 3600)], -5, true),
            // Twice.
            ([(-7210, 3600), (-3610, 3600)], -7259, true), ([(-7210, 3600), (-3610, 3600)], -7260, false),
        ] as [([(Int, Int)], Int, Bool)])
    func `a clock set forward makes no push older, and one set back forgets none`(
        steps: [(Int, Int)], end: Int, counts: Bool
    ) {
        let steps = steps.map { ClockStep(before: noon + .seconds($0.0), by: .seconds($0.1)) }
        let window = RollingWindow(Self.budget, at: noon, after: steps)
        #expect(window.counts(noon + .seconds(end)) == counts)
    }

    @Test func `a slot is free by the clock as it goes now`() {
        let step = ClockStep(before: noon - .seconds(3610), by: .seconds(3600))
        let window = RollingWindow(Self.budget, at: noon, after: [step])
        let ends = [noon - .seconds(3640), noon - .seconds(5)]
        #expect(window.decide(ends: ends, expiresAt: nil) == .wait(until: noon + .seconds(20), for: .silentBudget))
        #expect(window.forgottenUpTo == noon - .seconds(120 + 3600))
    }

    /// Random pushes of one device, answered after a while, while somebody sets the wall clock at random. What is true is
    /// measured by the clock that nobody can set.
    @Test(arguments: 1...200) func `whatever is done to the wall clock, no true window holds more than the limit`(
        seed: Int
    ) {
        var random = StepRandom(seed: UInt64(seed))
        let budget = Configuration.SilentBudget(limit: 3, window: .seconds(3600))
        var (offset, uptime) = (Duration.zero, Duration.zero)
        var pushes: [(trueEnd: Duration?, written: Timestamp?)] = []
        var steps: [ClockStep] = []
        var last = ClockReading(wall: noon, uptime: .zero, boot: "b")
        var sent = 0
        func note() {
            let reading = ClockReading(wall: noon + uptime + offset, uptime: uptime, boot: "b")
            if let step = ClockStep(from: last, to: reading) { steps.append(step) }
            last = reading
        }
        for _ in 0..<600 {
            uptime += .milliseconds(Int(random.next() % 600_000))
            if random.next() % 30 == 0 { offset += .seconds(Int(random.next() % 14_401) - 7200) }
            // A lease notices the step, and so does the sender's next look after an answer that was written before.
            defer { note() }
            if random.next() % 2 == 0 {
                let wall = noon + uptime + offset
                for index in pushes.indices where pushes[index].trueEnd == nil { pushes[index] = (uptime, wall) }
                continue
            }
            note()
            let window = RollingWindow(budget, at: last.wall, after: steps)
            guard case .send = window.decide(ends: pushes.map(\.written), expiresAt: nil) else { continue }
            let others = pushes.count { $0.trueEnd.map { $0 > uptime - budget.window } ?? true }
            #expect(others < budget.limit, "after \(sent) pushes")
            pushes.append((nil, nil))
            sent += 1
        }
        #expect(sent > 20)
    }
}

/// Vigna's splitmix64, so that a failure comes again.
private struct StepRandom {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }
}
