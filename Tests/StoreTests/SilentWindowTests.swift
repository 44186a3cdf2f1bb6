import Model
import Store
import Testing

struct SilentWindowTests {
    private static let budget = Configuration.SilentBudget(limit: 2, window: .seconds(60))

    @Test(arguments: [(-61, false), (-60, false), (-59, true), (0, true), (9, true)])
    func `a push counts until its outcome has left the window`(secondsAgo: Int, counts: Bool) {
        #expect(SilentWindow(Self.budget, at: noon).counts(noon + .seconds(secondsAgo)) == counts)
    }

    @Test func `a push in flight counts, and may end as late as now`() {
        let window = SilentWindow(Self.budget, at: noon)
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
        let decision = SilentWindow(Self.budget, at: noon).decide(
            ends: ends.map { noon + .seconds($0) }, expiresAt: nil)
        #expect(decision == .wait(until: noon + .seconds(free), for: .silentBudget))
    }

    @Test(arguments: [(9, LeaseDecision.suppress(.silentBudget)), (10, .suppress(.silentBudget))])
    func `a slot at the expiry is too late`(seconds: Int, expected: LeaseDecision) {
        let decision = SilentWindow(Self.budget, at: noon).decide(
            ends: [noon - .seconds(50), noon], expiresAt: noon + .seconds(seconds))
        #expect(decision == expected)
    }

    @Test func `a budget of none never has a slot`() {
        let window = SilentWindow(Configuration.SilentBudget(limit: 0, window: .seconds(60)), at: noon)
        #expect(window.decide(ends: [], expiresAt: nil) == .suppress(.silentBudget))
        #expect(window.isFull(0))
    }

    @Test func `what is forgotten counted for no push that still counts`() {
        let window = SilentWindow(Self.budget, at: noon)
        let oldestThatCounts = SilentWindow(Self.budget, at: window.opensAt + .milliseconds(1))
        #expect(!oldestThatCounts.counts(window.forgottenUpTo))
    }
}
