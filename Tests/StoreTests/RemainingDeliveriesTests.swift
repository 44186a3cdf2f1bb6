import Model
import Store
import Testing

/// Minutes count from noon, when the run was planned and last heard of; it is late after an hour.
@Suite struct `A claim` {
    private static func at(_ minutes: Int) -> Timestamp { noon + .seconds(minutes * 60) }

    private static func run(pending: Int, isTest: Bool = false) -> Run {
        let definition = RunDefinition(
            campaign: Campaign(name: "c", topic: "t", pushType: .alert, template: "t"), template: Template(name: "t"),
            variables: [:], plannedAt: noon)
        var counts = DeliveryCounts()
        (counts.audience, counts.pending) = (9, pending)
        return Run(
            id: 7, campaign: "c", occurrence: "o", definition: definition, state: .running, counts: counts,
            isFrozen: true, isTest: isTest, createdAt: noon, startedAt: noon, heartbeatAt: noon)
    }

    /// What a read of unknown cost counts for it.
    private static func counted(_ run: Run, at now: Timestamp) -> RemainingDeliveries {
        RemainingDeliveries(run, at: now) { LatePolicy.Remaining(due: 5, firstDue: nil) }
    }

    @Test(arguments: [(5, 59, false), (5, 60, false), (5, 61, true), (5, 600, true), (0, 600, false)])
    func `counts what is left only where the run may be late`(pending: Int, minutes: Int, isCounted: Bool) async throws
    {
        let (run, now) = (Self.run(pending: pending), Self.at(minutes))
        var counts = 0
        let remaining = try await RemainingDeliveries.ofClaim(run, at: now) {
            counts += 1
            return Self.counted(run, at: now)
        }
        // The row of a run says whether everything has its outcome.
        #expect(counts == (isCounted ? 1 : 0))
        let refusal = remaining.refusal(of: run, StopOrders(), at: now) { nil }
        let isLate = if case .foundLate = refusal { true } else { false }
        #expect(isLate == isCounted)
    }

    @Test func `of a test run counts nothing, however late it is`() async throws {
        let run = Self.run(pending: 5, isTest: true)
        let remaining = try await RemainingDeliveries.ofClaim(run, at: Self.at(600)) {
            Issue.record("counted")
            return Self.counted(run, at: Self.at(600))
        }
        #expect(remaining.refusal(of: run, StopOrders(), at: Self.at(600)) { nil } == nil)
    }
}
