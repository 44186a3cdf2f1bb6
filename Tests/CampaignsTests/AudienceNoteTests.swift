import Foundation
import Model
import Testing

@testable import Campaigns

/// What reports say about an audience that is not stored completely.
struct AudienceNoteTests {
    private static func run(_ state: RunState, audience: Int, isFrozen: Bool = false) -> Run {
        let start = Timestamp(seconds: 1_800_000_000)
        let definition = RunDefinition(
            campaign: Campaign(name: "c", topic: "a.b", pushType: .alert, template: "t"),
            template: Template(name: "t"), variables: [:], plannedAt: start)
        var counts = DeliveryCounts()
        counts.audience = audience
        return Run(
            id: 1, campaign: "c", occurrence: "o", definition: definition, state: state, counts: counts,
            isFrozen: isFrozen, createdAt: start)
    }

    @Test(
        arguments: [
            (.running, 2_000, false, "The audience is still being stored: 2,000 devices so far.", "so far"),
            (
                .cancelled, 2_000, false, "The audience was not stored completely: 2,000 devices when the run ended.",
                "(part)"
            ),
            (.scheduled, 0, false, "The audience is not stored yet.", "so far"), (.missed, 0, false, nil, nil),
            (.running, 2_000, true, nil, nil), (.finished, 0, true, nil, nil),
        ] as [(RunState, Int, Bool, String?, String?)])
    func `an audience that is not complete is called so`(
        state: RunState, audience: Int, isFrozen: Bool, note: String?, mark: String?
    ) {
        let run = Self.run(state, audience: audience, isFrozen: isFrozen)
        #expect(AudienceNote.text(of: run) == note)
        #expect(AudienceNote.mark(of: run) == mark && AudienceNote.mark(of: RunResult(run)) == mark)
        #expect(AudienceNote.text(of: ReportResult(Report(run: run, counts: run.counts))) == note)
    }
}
