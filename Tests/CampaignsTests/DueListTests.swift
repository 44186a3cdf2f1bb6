import Campaigns
import Foundation
import Model
import Store
import Testing

@Suite(.timeLimit(.minutes(10))) struct `The list of what is due now` {
    /// A generator whose numbers are the same in every test run.
    private struct Numbers: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    /// 2026-11-25T03:12:00Z
    private static let now = Timestamp(seconds: 1_795_576_320)

    private func campaign(
        _ name: String, _ trigger: Schedule.Trigger, zone: Schedule.Zone = .named("UTC"), lateByMax: Duration? = nil,
        changedAt: Timestamp = Self.now - .seconds(90 * 86_400)
    ) -> ReadyCampaign {
        var campaign = Campaign(name: name, topic: "com.example.a", pushType: .background, template: "t")
        var schedule = Schedule(trigger: trigger)
        schedule.zone = zone
        schedule.lateByMax = lateByMax
        campaign.schedule = schedule
        return ReadyCampaign(campaign: campaign, template: Template(name: "t"), changedAt: changedAt)
    }

    private func list(_ campaigns: [ReadyCampaign]) -> ListSchedule { ListSchedule(campaigns: campaigns, zone: .gmt) }

    @Test func `a start of half an hour ago is due, and no start that is over`() throws {
        let schedule = list([
            campaign("news", .at("2026-11-25T02:45")), campaign("over", .at("2026-11-25T01:45")),
            campaign("around", .at("2026-11-24T20:00"), zone: .recipient), campaign("later", .at("2026-11-25T03:45")),
        ])
        #expect(
            try schedule.due([], marks: [:], now: Self.now).map(\.campaign.campaign.name) == ["around", "news"])
        #expect(try schedule.due(["over"], marks: [:], now: Self.now).isEmpty)
        let coming = try schedule.coming([], count: 1, on: nil, now: Self.now)
        #expect(coming.entries.map(\.campaign.campaign.name) == ["later"])
        #expect(coming.past == ["over: its only start, 2026-11-25 01:45 UTC, is over"])
        #expect(coming.scheduled == 4)
    }

    @Test func `a rule is due from its mark on`() throws {
        let file = campaign("hourly", .cron("0 * * * *"), lateByMax: .seconds(7200))
        let schedule = list([file])
        var agenda = Agenda()
        var mark = try #require(agenda.update([file], marks: [:], now: Self.now).first)
        #expect(
            try schedule.due([], marks: [:], now: Self.now).map(\.occurrence.key) == [
                "2026-11-25T02:00", "2026-11-25T03:00",
            ])
        mark.since = Self.now - .seconds(1800)
        #expect(
            try schedule.due([], marks: ["hourly": mark], now: Self.now).map(\.occurrence.key) == ["2026-11-25T03:00"])
    }

    /// What the agenda starts is listed as due, what is missed already is not, and nothing stands in both parts of the list.
    @Test func `all that a daemon would start now is listed`() throws {
        var numbers = Numbers(state: 7)
        var found = 0
        for round in 0..<300 {
            let now = Self.now + .seconds(60 * Int.random(in: -5000...5000, using: &numbers))
            let files = (0..<4).map { index in
                let at = Timestamp(seconds: now.seconds + 60 * Int64.random(in: -3000...300, using: &numbers))
                let triggers: [Schedule.Trigger] = [
                    .at(String(TimeZone.gmt.wall(at: at).description.prefix(16))),
                    .cron("\(Int.random(in: 0...59, using: &numbers)) * * * *"),
                    .cron("0 \(Int.random(in: 0...23, using: &numbers)) * * *"),
                ]
                let zones: [Schedule.Zone] = [.named("UTC"), .named("Europe/Berlin"), .recipient]
                return campaign(
                    "c\(index)", triggers[Int.random(in: 0...2, using: &numbers)],
                    zone: zones[Int.random(in: 0...2, using: &numbers)],
                    lateByMax: .seconds(60 * Int.random(in: 0...600, using: &numbers)),
                    changedAt: now - .seconds(60 * Int.random(in: 0...3000, using: &numbers)))
            }
            var fresh = Agenda()
            var marks: [String: ScheduleMark] = [:]
            for var mark in fresh.update(files, marks: [:], now: now) where Bool.random(using: &numbers) {
                mark.since = now - .seconds(60 * Int.random(in: 0...3000, using: &numbers))
                marks[mark.campaign] = mark
            }
            var agenda = Agenda()
            _ = agenda.update(files, marks: marks, now: now)
            let started = agenda.due(at: now).filter { now <= $0.occurrence.missedAfter }
            found += started.count
            let schedule = list(files)
            let due = try schedule.due([], marks: marks, now: now)
            #expect(Set(due) == Set(started), "round \(round)")
            let coming = try schedule.coming([], count: 3, on: nil, now: now)
            #expect(Set(coming.entries).isDisjoint(with: due), "round \(round)")
            #expect(coming.entries.allSatisfy { $0.occurrence.startsAt > now }, "round \(round)")
        }
        #expect(found > 300)
    }
}
