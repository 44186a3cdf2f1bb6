import Model
import Store
import Testing

/// What a timer's call does about earlier runs.
@Suite struct UnfinishedRunsTests {
    private func run(_ id: Int64, halt: RunHalt? = .late, pausedBy: String? = nil) -> Run {
        let moment = Timestamp(seconds: 1_795_000_000)
        let campaign = Campaign(name: "news", topic: "com.example.app", pushType: .alert, template: "t")
        let definition = RunDefinition(
            campaign: campaign, template: Template(name: "t"), variables: [:], plannedAt: moment)
        return Run(
            id: id, campaign: "news", occurrence: "timer-2026-11-0\(id)", definition: definition,
            state: halt == nil ? .running : .paused, createdAt: moment, pausedBy: pausedBy, halt: halt)
    }

    @Test func `a late run keeps no other occurrence from starting, and every other unfinished run comes first`() {
        let late = run(1)
        let held = run(2, halt: .breaker)
        let byPerson = run(3, pausedBy: "ray")
        let running = run(4, halt: nil)
        let today = "timer-2026-11-09"
        let alone = UnfinishedRuns([late], occurrence: today)
        #expect(alone.next == nil && alone.late == [late])
        for other in [held, byPerson, running] {
            let found = UnfinishedRuns([late, other], occurrence: today)
            #expect(found.next == other && found.late == [late])
        }
        // It is the very occurrence that the call stands for, or the call creates no run.
        for occurrence in [late.occurrence, nil] {
            let found = UnfinishedRuns([late, running], occurrence: occurrence)
            #expect(found.next == late && found.late.isEmpty)
        }
        #expect(UnfinishedRuns([], occurrence: today).next == nil)
    }
}
