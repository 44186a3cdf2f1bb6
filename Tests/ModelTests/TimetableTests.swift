import Foundation
import Model
import Testing

struct `A timetable` {
    private static func timetable(_ trigger: Schedule.Trigger, _ zone: String) throws -> Timetable {
        var schedule = Schedule(trigger: trigger)
        schedule.zone = zone == "recipient" ? .recipient : .named(zone)
        return try #require(Timetable(schedule))
    }

    private static func moment(_ text: String) throws -> Timestamp {
        Timestamp(seconds: try #require(WallTime(text)).seconds)
    }

    @Test(
        arguments: [
            ("30 2 * * *", "Europe/Berlin", "2027-03-27T12:00", ["Europe/Berlin skipped"]),
            // Somebody asked for that hour: it is there, and nothing is left out.
            ("0 2,3 * * *", "Europe/Berlin", "2027-03-27T12:00", []),
            ("30 2 * * *", "Europe/Berlin", "2027-10-30T12:00", ["Europe/Berlin twice"]),
            ("30 3 * * *", "Europe/Berlin", "2027-10-30T12:00", []),
            ("30 2 * * *", "UTC", "2027-03-27T12:00", []),
            ("30 2 * * *", "recipient", "2027-03-27T12:00", ["Europe/Berlin skipped"]),
            ("30 9 * * *", "recipient", "2027-03-27T12:00", []),
        ] as [(String, String, String, [String])])
    func `says which clocks leave a time out or show it twice`(
        cron: String, zone: String, from: String, expected: [String]
    ) throws {
        let timetable = try Self.timetable(.cron(cron), zone)
        let next = try #require(timetable.next(after: try Self.moment(from)))
        #expect(timetable.clockChanges(at: next).map { "\($0.zone) \($0.kind)" } == expected)
    }

    /// What people who live there would say; the facts are those of the zone database.
    @Test(
        arguments: [
            // Clocks go from 02:00 to 03:00, and back from 03:00 to 02:00.
            ("30 2 * * *", "Europe/Berlin", "2026-03-28", ["03-28T01:30", "03-29T01:00", "03-30T00:30"]),
            ("30 2 * * *", "Europe/Berlin", "2026-10-24", ["10-24T00:30", "10-25T00:30", "10-26T01:30"]),
            ("*/30 1-3 * * *", "Europe/Berlin", "2026-03-29", ["03-29T00:00", "03-29T00:30", "03-29T01:00"]),
            ("@hourly", "Europe/Berlin", "2026-10-25", ["10-25T00:00", "10-25T02:00", "10-25T03:00"]),
            // Half an hour only: 02:00 to 02:30, and 02:00 to 01:30.
            ("15 2 * * *", "Australia/Lord_Howe", "2026-10-02T12:00", ["10-02T15:45", "10-03T15:30", "10-04T15:15"]),
            ("45 1 * * *", "Australia/Lord_Howe", "2026-04-03T12:00", ["04-03T14:45", "04-04T14:45", "04-05T15:15"]),
            // At midnight: 00:00 to 01:00.
            ("30 0 * * *", "America/Sao_Paulo", "2018-11-03", ["11-03T03:30", "11-04T03:00", "11-05T02:30"]),
            // The 30th of December 2011 never was.
            ("0 9 * * *", "Pacific/Apia", "2011-12-29", ["12-29T19:00", "12-30T19:00", "12-31T19:00"]),
            ("0 9 * * *", "Asia/Kolkata", "2026-06-01", ["06-01T03:30", "06-02T03:30", "06-03T03:30"]),
            ("0 9 29 2 *", "UTC", "2095-01-01", ["02-29T09:00", "02-29T09:00"]),
            ("0 9 31 * *", "UTC", "2026-02-01", ["03-31T09:00", "05-31T09:00", "07-31T09:00"]),
        ] as [(String, String, String, [String])])
    func `starts when its clocks say so`(cron: String, zone: String, from: String, expected: [String]) throws {
        let timetable = try Self.timetable(.cron(cron), zone)
        let found = timetable.occurrences(
            after: try Self.moment(from) - .seconds(1), through: nil, atMost: expected.count)
        #expect(found.map { String($0.startsAt.iso8601.dropFirst(5).prefix(11)) } == expected)
        #expect(found.map { timetable.occurrence(named: $0.key) } == found)
    }

    @Test func `a time without a rule comes once`() throws {
        let timetable = try Self.timetable(.at("2026-03-29T02:30"), "Europe/Berlin")
        let next = try #require(timetable.next(after: try Self.moment("2026-01-01")))
        #expect(next.key == "2026-03-29T03:00")
        #expect(next.startsAt.iso8601 == "2026-03-29T01:00:00Z")
        #expect(timetable.next(after: next.startsAt) == nil)
        #expect(timetable.isOnce)
    }

    @Test func `in each device's own time it starts with the first clocks on Earth`() throws {
        var schedule = Schedule(trigger: .cron("0 9 * * *"))
        schedule.zone = .recipient
        schedule.lateByMax = .seconds(7200)
        let next = try #require(Timetable(schedule)?.next(after: try Self.moment("2026-12-01")))
        #expect(next.key == "2026-12-02T09:00")
        #expect(next.startsAt.iso8601 == "2026-12-01T19:00:00Z")
        #expect(next.lastStartsAt.iso8601 == "2026-12-02T21:00:00Z")
        #expect(next.missedAfter.iso8601 == "2026-12-02T23:00:00Z")
    }

    @Test(
        arguments: [
            ("2026-12-01T09:00", true), ("2026-12-05T09:00", false), ("2026-12-01T09:01", false),
            ("2026-12-01", false), ("friday", false), ("", false),
        ]) func `knows its occurrences by their keys`(key: String, isOne: Bool) throws
    {
        let timetable = try Self.timetable(.cron("0 9 * * MON-FRI"), "Europe/Berlin")
        #expect((timetable.occurrence(named: key)?.key == key) == isOne)
    }

    /// A thousand with FANFARE_LONG_TESTS, to be timed in a release build.
    private static let scheduleCount = ProcessInfo.processInfo.environment["FANFARE_LONG_TESTS"] == nil ? 30 : 1000

    @Test func `a year of many schedules has one occurrence for each of their days`() throws {
        let zones = TimeZone.knownTimeZoneIdentifiers
        let start = try Self.moment("2026-01-01")
        var count = 0
        for number in 0..<Self.scheduleCount {
            let timetable = try Self.timetable(
                .cron("\(number % 60) \(number % 24) * * *"), zones[number * 7 % zones.count])
            count += timetable.occurrences(after: start, through: start + .seconds(365 * 86_400)).count
        }
        #expect((364...366).contains(count / Self.scheduleCount))
    }
}
