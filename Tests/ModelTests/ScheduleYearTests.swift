import Foundation
import Model
import TestSupport
import Testing

/// Whole years, five minutes by five minutes, against what the clocks of each zone really show.
@Suite(.timeLimit(.minutes(10))) struct `A year of schedules` {
    struct Row: Sendable, CustomStringConvertible {
        var cron: String
        /// The same said in another way: month, day, weekday (1 is Sunday), minute of the day.
        var matches: @Sendable (_ month: Int, _ day: Int, _ weekday: Int, _ minute: Int) -> Bool

        var description: String { cron }
    }

    private static let rows = [
        Row(cron: "0 9 * * MON-FRI") { _, _, weekday, minute in (2...6).contains(weekday) && minute == 540 },
        Row(cron: "30 2 * * *") { _, _, _, minute in minute == 150 },
        Row(cron: "15 0,2 * * *") { _, _, _, minute in minute == 15 || minute == 135 },
        Row(cron: "*/20 * * * SUN") { _, _, weekday, minute in weekday == 1 && minute % 20 == 0 },
        Row(cron: "45 1 29,31 * *") { _, day, _, minute in minute == 105 && (day == 29 || day == 31) },
        Row(cron: "0 0 1 */2 *") { month, day, _, minute in month % 2 == 1 && day == 1 && minute == 0 },
        Row(cron: "@hourly") { _, _, _, minute in minute % 60 == 0 },
    ]

    private static let zones = [
        "Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia",
    ]

    @Test(arguments: rows, Nightly.rows([2011], atNight: [2018, 2026]))
    func `every occurrence comes once, and no other`(
        row: Row, year: Int64
    ) throws {
        let start = Timestamp(seconds: WallTime(CivilDay(year: year, month: 1, day: 1)).seconds)
        let end = Timestamp(seconds: WallTime(CivilDay(year: year + 1, month: 1, day: 1)).seconds)
        for name in Self.zones {
            var schedule = Schedule(trigger: .cron(row.cron))
            schedule.zone = .named(name)
            let found = try #require(Timetable(schedule)).occurrences(after: start, through: end)
            let expected = try Self.expected(row, try #require(TimeZone(identifier: name)), start, end)
            #expect(found.map(\.startsAt.seconds) == expected, "\(name)")
            #expect(Set(found.map(\.key)).count == found.count, "\(name)")
        }
    }

    /// Walks through the year and looks at the clock: a time it shows for the first time, or has just left out, counts.
    private static func expected(
        _ row: Row, _ zone: TimeZone, _ start: Timestamp, _ end: Timestamp
    ) throws -> [Int64] {
        var matches: [Int64: [Bool]] = [:]
        func matchesWall(_ minutes: Int64) throws -> Bool {
            let (day, minute) = minutes.quotientAndRemainder(dividingBy: 1440)
            if let known = matches[day] { return known[Int(minute)] }
            matches = [day: try self.day(row, day)]
            return matches[day]?[Int(minute)] ?? false
        }
        // All times in question, and all changes of offset, fall on these.
        let step: Int64 = 5
        func wall(_ second: Int64) -> Int64 {
            (second + Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(second))))) / 60
        }
        var found: [Int64] = []
        var shown = wall(start.seconds)
        for second in stride(from: start.seconds + step * 60, through: end.seconds, by: Int(step * 60)) {
            let now = wall(second)
            guard now > shown else { continue }
            // A day and more left out at the date line never was.
            let first = now - shown > 720 ? now : shown + step
            if try stride(from: first, through: now, by: Int(step)).contains(where: matchesWall) {
                found.append(second)
            }
            shown = now
        }
        return found
    }

    private static func day(_ row: Row, _ day: Int64) throws -> [Bool] {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = try #require(TimeZone(identifier: "UTC"))
        let parts = calendar.dateComponents(
            [.month, .day, .weekday], from: Date(timeIntervalSince1970: Double(day) * 86_400))
        let (month, date, weekday) = (
            try #require(parts.month), try #require(parts.day), try #require(parts.weekday)
        )
        return (0..<1440).map { row.matches(month, date, weekday, $0) }
    }
}
