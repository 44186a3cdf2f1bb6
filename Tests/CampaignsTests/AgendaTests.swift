import Campaigns
import Foundation
import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct `What is due` {
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

    /// First seen at a time, with a file of another time: what is started then?
    @Test(
        arguments: [
            ("2026-12-01T07:00", "2026-12-01T08:30", ["12-01T09:00"]),
            ("2026-12-01T08:10", "2026-12-01T08:30", []),
            ("2026-11-20T07:00", "2026-12-01T08:30", ["12-01T09:00"]),
            // Just as late as allowed.
            ("2026-11-20T07:00", "2026-12-01T10:00", ["12-01T09:00"]),
            ("2026-11-20T07:00", "2026-12-01T10:30", []),
            ("2026-12-01T07:00", "2026-12-01T07:59", []),
            ("2026-12-01T07:00", "2026-12-01T08:00", ["12-01T09:00"]),
        ] as [(String, String, [String])])
    func `a file that is new catches up on what it was in time for`(
        changedAt: String, now: String, expected: [String]
    ) throws {
        var agenda = Agenda()
        let now = try Self.moment(now)
        let marks = agenda.update([try campaign(changedAt: changedAt)], marks: [:], now: now)
        #expect(marks.count == 1)
        #expect(agenda.due(at: now).map { String($0.occurrence.key.dropFirst(5)) } == expected)
        #expect(agenda.due(at: now).isEmpty)
        let next = try #require(agenda.nextStart)
        #expect(next > now)
        #expect(agenda.due(at: next).count == 1)
    }

    @Test func `a known schedule is caught up from its mark on, another one is new`() throws {
        let now = try Self.moment("2026-12-04T10:30")
        let file = try campaign(changedAt: "2026-01-01")
        var agenda = Agenda()
        var mark = try #require(agenda.update([file], marks: [:], now: try Self.moment("2026-12-01")).first)
        mark.since = try Self.moment("2026-12-01T12:00")
        var again = Agenda()
        #expect(again.update([file], marks: ["c": mark], now: now).isEmpty)
        #expect(
            again.due(at: now).map(\.occurrence.key) == ["2026-12-02T09:00", "2026-12-03T09:00", "2026-12-04T09:00"])
        let edited = try campaign("c", .cron("0 8 * * *"), changedAt: "2026-12-04T10:29")
        #expect(again.update([edited], marks: ["c": mark], now: now).map(\.campaign) == ["c"])
        #expect(again.due(at: now).isEmpty)
        #expect(again.nextStart == (try Self.moment("2026-12-05T07:00")))
        #expect(again.update([], marks: [:], now: now).isEmpty)
        #expect(again.nextStart == nil)
    }

    /// By a clock that was wrong when it was written, or copied from a machine whose clock is.
    @Test(arguments: ["2026-12-01T08:31", "2026-12-03T12:00", "2036-01-01T00:00"])
    func `a file written in the future counts as written now`(changedAt: String) throws {
        let now = try Self.moment("2026-12-01T08:30")
        var agenda = Agenda()
        let marks = agenda.update([try campaign(changedAt: changedAt)], marks: [:], now: now)
        #expect(marks.map(\.since) == [now])
        #expect(agenda.due(at: now).isEmpty)
        #expect(agenda.nextStart == (try Self.moment("2026-12-02T08:00")))
    }

    @Test func `of what passed while nobody looked for over 31 days, the older is not caught up on`() throws {
        let now = try Self.moment("2026-12-04T10:30")
        let file = try campaign(changedAt: "2026-01-01")
        var first = Agenda()
        var mark = try #require(first.update([file], marks: [:], now: try Self.moment("2026-10-01")).first)
        mark.since = try Self.moment("2026-10-01")
        var agenda = Agenda()
        #expect(agenda.update([file], marks: ["c": mark], now: now).isEmpty)
        let keys = agenda.due(at: now).map(\.occurrence.key)
        #expect(keys.count == 31 && keys.first == "2026-11-04T09:00" && keys.last == "2026-12-04T09:00")
    }

    @Test func `of very many that passed the latest hundred are left`() throws {
        let now = try Self.moment("2026-12-04T10:30")
        let file = try campaign("c", .cron("* * * * *"), changedAt: "2026-01-01")
        var first = Agenda()
        let mark = try #require(first.update([file], marks: [:], now: try Self.moment("2026-12-04T06:00")).first)
        var agenda = Agenda()
        _ = agenda.update([file], marks: ["c": mark], now: now)
        let starts = agenda.due(at: now).map(\.occurrence.startsAt)
        #expect(starts == (0..<100).map { now - .seconds(60 * (99 - $0)) })
    }

    @Test func `a time written down is found however late, and urgent ones come first`() throws {
        let now = try Self.moment("2026-12-01T12:00")
        var agenda = Agenda()
        let files = try [
            campaign("b", .at("2026-12-01T09:00"), changedAt: "2026-12-01T11:59") { $0.priority = .lowest },
            campaign("a", .at("2026-12-01T09:00"), changedAt: "2026-12-01T11:59") { $0.priority = .immediate },
            campaign("c", .at("2026-10-01T09:00"), changedAt: "2026-12-01T11:59"),
        ]
        _ = agenda.update(files, marks: [:], now: now)
        #expect(agenda.due(at: now).map(\.campaign.campaign.name) == ["a", "b"])
    }
}
