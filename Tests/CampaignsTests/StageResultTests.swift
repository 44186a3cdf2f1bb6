import Campaigns
import Model
import Store
import Testing

struct StageResultTests {
    private static let start = Timestamp(seconds: 1_795_576_320)

    private func run(_ state: RunState) -> Run {
        var campaign = Campaign(name: "c", topic: "com.example.a", pushType: .background, template: "t")
        campaign.stages = [Stage(.share(50)), Stage(.rest)]
        let definition = RunDefinition(
            campaign: campaign, template: Template(name: "t"), variables: [:], plannedAt: Self.start)
        return Run(
            id: 1, campaign: "c", occurrence: "o", definition: definition, state: state, isTest: false,
            createdAt: Self.start)
    }

    @Test(
        arguments: [(.running, "open"), (.paused, "open"), (.finished, "ended"), (.cancelled, "ended")]
            as [(RunState, String)])
    func `the last stage of a run that is over is not open`(state: RunState, word: String) throws {
        let records = [
            StageRecord(index: 0, size: 5, openedAt: Self.start), StageRecord(index: 1, size: 5, openedAt: Self.start),
        ]
        let stages = try #require(StageResult.all(run(state), records))
        #expect(stages.map(\.state) == [word, word])
    }
}
