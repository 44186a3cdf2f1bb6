import Campaigns
import Daemon
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

/// What is due becomes runs.
@Suite(.timeLimit(.minutes(2))) struct `Due runs` {
    private static func moment(_ text: String) throws -> Timestamp {
        Timestamp(seconds: try #require(WallTime(text)).seconds)
    }

    /// Nine o'clock in Berlin is eight in UTC then.
    private func campaign(
        _ name: String = "c", _ trigger: Schedule.Trigger = .cron("0 9 * * *"), changedAt: String,
        lateByMax: Duration? = .seconds(7200), change: (inout Campaign) -> Void = { _ in }
    ) throws -> ReadyCampaign {
        var campaign = Campaign(name: name, topic: PipelineScene.topic, pushType: .background, template: "t")
        var schedule = Schedule(trigger: trigger)
        schedule.zone = .named("Europe/Berlin")
        schedule.lateByMax = lateByMax
        campaign.schedule = schedule
        change(&campaign)
        return ReadyCampaign(
            campaign: campaign, template: Template(name: "t"), changedAt: try Self.moment(changedAt))
    }

    @Test func `becomes one run, missed or failed with the reason where it cannot be sent`() async throws {
        let scene = try PipelineScene()
        let due = DueRuns(store: scene.store, actor: "daemon")
        let now = try Self.moment("2026-12-01T09:00")
        let files = try [
            campaign("fine", changedAt: "2026-12-01T07:00"),
            campaign("late", .at("2026-12-01T05:00"), changedAt: "2026-12-01T07:00"),
            campaign("guarded", changedAt: "2026-12-01T07:00") { $0.guards.minReach = 5 },
        ]
        var agenda = Agenda()
        _ = agenda.update(files, marks: [:], now: now)
        let entries = agenda.due(at: now)
        let made = try await due.make(entries, now: now)
        #expect(try await due.make(entries, now: now).isEmpty)
        let runs = try await scene.store.runs(limit: 10)
        #expect(
            Dictionary(uniqueKeysWithValues: runs.map { ($0.campaign, $0.state) }) == [
                "fine": .scheduled, "late": .missed, "guarded": .failed,
            ])
        #expect(runs.first { $0.campaign == "late" }?.stateReason == "found 5h after its time, late_by_max is 2h")
        #expect(runs.first { $0.campaign == "late" }?.finishedAt == now)
        #expect(made.map(\.due.campaign.campaign.name) == ["late", "fine", "guarded"])
        #expect(
            try await scene.store.openRuns(for: "me", inHand: []).map(\.campaign) == ["fine"]
        )
    }

    /// Nine o'clock in Berlin, found two hours later.
    @Test(arguments: [(-1, RunState.scheduled), (0, .scheduled), (1, .missed)])
    func `an occurrence just as late as allowed is made`(milliseconds: Int, state: RunState) async throws {
        let scene = try PipelineScene()
        var agenda = Agenda()
        let file = try campaign(changedAt: "2026-12-01T07:00")
        _ = agenda.update([file], marks: [:], now: try Self.moment("2026-12-01T07:00"))
        let now = try Self.moment("2026-12-01T10:00") + .milliseconds(milliseconds)
        _ = try await DueRuns(store: scene.store, actor: "daemon").make(agenda.due(at: now), now: now)
        #expect(try await scene.store.runs(limit: 10).map(\.state) == [state])
    }
}
