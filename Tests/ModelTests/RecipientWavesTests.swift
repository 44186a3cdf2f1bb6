import Foundation
import Model
import Testing

struct `Whose turn comes when` {
    private static func waves(
        _ missed: Schedule.MissedZone, unknown: Schedule.UnknownZone?, startedAt: String
    ) throws -> RecipientWaves {
        var campaign = Campaign(name: "c", topic: "t", pushType: .alert, template: "t")
        var schedule = Schedule(trigger: .cron("30 2 * * *"))
        schedule.zone = .recipient
        schedule.missedZone = missed
        schedule.unknownZone = unknown
        schedule.lateByMax = .seconds(1800)
        campaign.schedule = schedule
        let definition = RunDefinition(
            campaign: campaign, template: Template(name: "t"), variables: [:], plannedAt: Timestamp(seconds: 0),
            wall: WallTime("2026-03-29T02:30"))
        let start = Timestamp(seconds: try #require(WallTime(startedAt)).seconds)
        return try #require(RecipientWaves(definition, startedAt: start))
    }

    /// Started at 02:30 in Kiribati, and at 01:00 UTC: then Tokyo was 7.5 h too late, New York has 5.5 h to go, and the
    /// clocks of Berlin go from 02:00 to 03:00 just now.
    @Test(
        arguments: [
            ("Pacific/Kiritimati", "03-28T12:30", "03-29T12:30", "03-29T01:00", nil),
            ("Asia/Tokyo", "03-28T17:30", "03-29T17:30", "03-29T01:00", nil),
            ("Europe/Berlin", "03-29T01:00", "03-29T01:00", "03-29T01:00", "03-29T01:00"),
            ("America/New_York", "03-29T06:30", "03-29T06:30", "03-29T06:30", "03-29T06:30"),
            ("Etc/GMT+12", "03-29T14:30", "03-29T14:30", "03-29T14:30", "03-29T14:30"),
            ("Nowhere/AtAll", "03-29T01:30", "03-29T01:30", "03-29T01:30", "03-29T01:30"),
            (nil, "03-29T01:30", "03-29T01:30", "03-29T01:30", "03-29T01:30"),
        ] as [(String?, String, String, String, String?)])
    func `follows the clock, and missed_zone where it is over`(
        zone: String?, inTime: String, nextDay: String, sendNow: String, drop: String?
    ) throws {
        let rows: [(Schedule.MissedZone, String, String?)] = [
            (.nextDay, "2026-03-28T12:30", inTime), (.nextDay, "2026-03-29T01:00", nextDay),
            (.sendNow, "2026-03-29T01:00", sendNow), (.drop, "2026-03-29T01:00", drop),
        ]
        for (missed, start, expected) in rows {
            let waves = try Self.waves(missed, unknown: .named("Africa/Lagos"), startedAt: start)
            switch waves.turn(inZone: zone) {
            case .at(let moment): #expect(String(moment.iso8601.dropFirst(5).prefix(11)) == expected)
            case .never(let reason): #expect(expected == nil && reason == .late)
            }
        }
    }

    /// It is 02:30 in Tokyo at 17:30 UTC the day before; late_by_max is half an hour.
    @Test(
        arguments: [
            ("2026-03-28T17:59", "03-28T17:30"), ("2026-03-28T18:00", "03-28T17:30"),
            ("2026-03-28T18:01", "03-29T17:30"),
        ])
    func `a turn just as late as allowed is not missed`(startedAt: String, expected: String) throws {
        let waves = try Self.waves(.nextDay, unknown: nil, startedAt: startedAt)
        #expect(try Self.shown(waves.turn(inZone: "Asia/Tokyo")) == expected)
        let dropping = try Self.waves(.drop, unknown: nil, startedAt: startedAt)
        #expect((dropping.turn(inZone: "Asia/Tokyo") == .never(.late)) == (expected == "03-29T17:30"))
    }

    @Test(
        arguments: [
            ("2026-03-29T17:29", "03-29T17:30"), ("2026-03-29T17:31", "03-29T17:31"),
            ("2026-03-29T18:00", "03-29T18:00"), ("2026-03-29T18:01", nil), ("2026-03-31T12:00", nil),
        ] as [(String, String?)])
    func `a zone whose next day's turn is over as well, by more than late_by_max, is left out as late`(
        startedAt: String, expected: String?
    ) throws {
        let waves = try Self.waves(.nextDay, unknown: nil, startedAt: startedAt)
        let turn = waves.turn(inZone: "Asia/Tokyo")
        if let expected { #expect(try Self.shown(turn) == expected) } else { #expect(turn == .never(.late)) }
    }

    /// It is 09:00 in Auckland at 20:00 UTC the day before.
    @Test func `nobody is sent to at another hour because a daemon came back a day later`() throws {
        var campaign = Campaign(name: "c", topic: "t", pushType: .alert, template: "t")
        campaign.schedule = Schedule(trigger: .cron("0 9 * * *"))
        campaign.schedule?.zone = .recipient
        let definition = RunDefinition(
            campaign: campaign, template: Template(name: "t"), variables: [:], plannedAt: Timestamp(seconds: 0),
            wall: WallTime("2026-12-01T09:00"))
        let start = Timestamp(seconds: try #require(WallTime("2026-12-01T21:30")).seconds)
        let waves = try #require(RecipientWaves(definition, startedAt: start))
        #expect(waves.turn(inZone: "Pacific/Auckland") == .never(.late))
        #expect(try Self.shown(waves.turn(inZone: "Asia/Tokyo")) == "12-02T00:00")
    }

    private struct NoTurn: Error {}

    /// `03-28T17:30`.
    private static func shown(_ turn: RecipientWaves.Turn) throws -> String {
        guard case .at(let moment) = turn else { throw NoTurn() }
        return String(moment.iso8601.dropFirst(5).prefix(11))
    }

    @Test(arguments: [.drop, nil] as [Schedule.UnknownZone?])
    func `a device without a zone gets nothing where that is said`(unknown: Schedule.UnknownZone?) throws {
        let waves = try Self.waves(.nextDay, unknown: unknown, startedAt: "2026-03-28T12:30")
        #expect(waves.turn(inZone: nil) == .never(.unknownZone))
        #expect(waves.turn(inZone: "Mars/Olympus") == .never(.unknownZone))
    }

    @Test func `each wave expires by its own start`() {
        let expiry = Expiry(plannedAt: Timestamp(seconds: 1000), after: .seconds(60))
        #expect(expiry.moment(wave: nil) == Timestamp(seconds: 1060))
        #expect(expiry.headerSeconds(wave: Timestamp(seconds: 5000)) == 5060)
        let atOnce = Expiry(plannedAt: Timestamp(seconds: 1000), after: .zero)
        #expect(atOnce.moment(wave: nil) == nil)
        #expect(atOnce.headerSeconds(wave: Timestamp(seconds: 5000)) == 0)
    }
}
