import Foundation
import Model
import Testing

struct `The best hour` {
    private static func counts(_ opens: [Int: Int]) -> HourCounts {
        var counts = HourCounts()
        for (hour, count) in opens { counts.add(count, at: hour) }
        return counts
    }

    private static let curve = counts([9: 300, 12: 200, 19: 500])

    @Test(
        arguments: [
            ("most opens", [9: 1, 18: 5], 18, .own), ("a tie goes by the curve", [9: 3, 12: 3], 9, .own),
            ("a tie without a curve goes to the earlier hour", [15: 3, 10: 3], 10, .own),
            ("hours outside the band do not count", [23: 90, 12: 5], 12, .own),
            ("only hours outside the band", [23: 90], 19, .app), ("four opens are too few", [9: 4], 19, .app),
            ("no opens", [:], 19, .app),
            // Spread over many hours, one open each is less than the curve's five.
            ("opens without a favourite", [8: 1, 10: 1, 11: 1, 13: 1, 14: 1], 19, .app),
            ("an hour that the curve supports wins over one more open", [12: 4, 19: 3], 19, .own),
        ] as [(String, [Int: Int], Int, BestHour.Basis)])
    func `is that of the opens, mixed with the app's curve`(
        name: String, opens: [Int: Int], hour: Int, basis: BestHour.Basis
    ) throws {
        let best = try #require(BestHour(band: 8..<21, curve: Self.curve))
        #expect(best.choice(Self.counts(opens)) == BestHour.Choice(hour: hour, basis: basis), "\(name)")
    }

    @Test func `without any opens is the first hour`() throws {
        let best = try #require(BestHour(band: 8..<21, curve: HourCounts()))
        #expect(best.usual == BestHour.Choice(hour: 8, basis: .none))
        #expect(best.choice(Self.counts([18: 5])) == BestHour.Choice(hour: 18, basis: .own))
        // The app has opens, but none in these hours.
        let night = try #require(BestHour(band: 2..<5, curve: Self.curve))
        #expect(night.usual == BestHour.Choice(hour: 2, basis: .none))
    }

    @Test(arguments: [8..<8, -1..<3, 20..<25]) func `needs a band within one day`(band: Range<Int>) {
        #expect(BestHour(band: band, curve: HourCounts()) == nil)
    }

    /// Berlin puts its clocks forward on 28 March 2027 at 01:00 UTC.
    @Test func `goes by the local hour, also on the day of a clock change`() throws {
        let zone = try #require(TimeZone(identifier: "Europe/Berlin"))
        let end = Timestamp(seconds: try #require(WallTime("2027-04-10T00:00")).seconds)
        let hours = LocalHours(zone, during: end - BestHour.history..<end)
        let rows = [
            ("2027-01-15T23:30", 0), ("2027-03-27T12:00", 13), ("2027-03-28T00:45", 1), ("2027-03-28T01:00", 3),
            ("2027-03-28T12:00", 14), ("2027-04-09T22:00", 0), ("2020-07-01T00:00", 2),
        ]
        for (moment, hour) in rows {
            let seconds = try #require(WallTime(moment)).seconds
            #expect(hours.hour(atMs: seconds * 1000) == hour, "\(moment)")
        }
        let kolkata = LocalHours(try #require(TimeZone(identifier: "Asia/Kolkata")), during: end - .seconds(9)..<end)
        #expect(kolkata.hour(atMs: end.milliseconds) == 5)
    }

    private static func schedule(_ trigger: Schedule.Trigger) -> Schedule {
        var schedule = Schedule(trigger: trigger)
        schedule.zone = .recipient
        schedule.bestHour = Schedule.BestHours(untilMinute: 21 * 60)
        return schedule
    }

    @Test func `makes the last turn of an occurrence later, and moves each zone's turn`() throws {
        var schedule = Self.schedule(.at("2027-01-15T08:00"))
        let occurrence = try #require(Timetable(schedule)?.occurrence(named: "2027-01-15T08:00"))
        #expect(occurrence.startsAt.iso8601 == "2027-01-14T18:00:00Z")
        #expect(occurrence.lastStartsAt.iso8601 == "2027-01-16T08:00:00Z")
        #expect(occurrence.missedAfter.iso8601 == "2027-01-16T09:00:00Z")
        schedule.missedZone = .drop
        var campaign = Campaign(name: "c", topic: "t", pushType: .alert, template: "t")
        campaign.schedule = schedule
        let definition = RunDefinition(
            campaign: campaign, template: Template(name: "t"), variables: [:], plannedAt: occurrence.startsAt
        ).planned(for: occurrence)
        #expect(definition.bestHours == 8..<21)
        let waves = try #require(RecipientWaves(definition, startedAt: occurrence.startsAt))
        #expect(waves.band == 8..<21)
        let berlin = Timestamp(seconds: try #require(WallTime("2027-01-15T19:00")).seconds - 3600)
        #expect(waves.turn(inZone: "Europe/Berlin", hour: 20) == .at(berlin + .seconds(3600)))
        #expect(waves.turn(inZone: nil, hour: 20) == .never(.unknownZone))
        // It is 13:00:01 in Berlin, so a turn at 12:00 is more than an hour late.
        let late = try #require(RecipientWaves(definition, startedAt: berlin - .seconds(6 * 3600 - 1)))
        #expect(late.turn(inZone: "Europe/Berlin", hour: 12) == .never(.late))
        #expect(late.turn(inZone: "Europe/Berlin", hour: 13) == .at(berlin - .seconds(6 * 3600)))
    }

    @Test func `finds the hour that people prefer, in most cases`() throws {
        var generator = SeededGenerator(seed: 20_270_115)
        // Most people are awake from 7 to 22, with a peak in the evening.
        let weights = (0..<24).map { hour in hour < 7 || hour > 22 ? 1 : hour == 19 || hour == 20 ? 12 : 5 }
        let ordinary = weights.enumerated().flatMap { Array(repeating: $0.offset, count: $0.element) }
        let people = (0..<4_000).map { _ in
            (favourite: Int.random(in: 8..<21, using: &generator), opens: Int.random(in: 5...40, using: &generator))
        }
        var histories: [HourCounts] = []
        var curve = HourCounts()
        for person in people {
            var own = HourCounts()
            for _ in 0..<person.opens {
                let isUsual = Double.random(in: 0..<1, using: &generator) < 0.5
                let hour = isUsual ? person.favourite : ordinary[Int.random(in: 0..<ordinary.count, using: &generator)]
                own.add(at: hour)
                curve.add(at: hour)
            }
            histories.append(own)
        }
        let best = try #require(BestHour(band: 8..<21, curve: curve))
        let found = zip(people, histories).count { best.choice($1).hour == $0.favourite }
        let byApp = people.count { best.usual.hour == $0.favourite }
        print("favourite hours found for \(found) of \(people.count) people; \(byApp) by the app's hour alone")
        #expect(found > people.count * 85 / 100)
        #expect(byApp < people.count / 5)
    }

    @Test func `halves are even, and independent of variants`() {
        var campaign = Campaign(name: "c", topic: "t", pushType: .alert, template: "t")
        campaign.variants = ["a", "b"].map { Campaign.Variant(name: $0, weight: 1, template: "t") }
        campaign.schedule = Self.schedule(.cron("0 8 * * *"))
        let split = CampaignSplit(campaign)
        var cells = [0, 0, 0, 0]
        for device in 1...Int64(20_000) {
            cells[(split.getsOwnHour(device) ? 2 : 0) + (split.variant(of: device) ?? 0)] += 1
        }
        #expect(cells.allSatisfy { 4_700...5_300 ~= $0 }, "\(cells)")
    }
}
