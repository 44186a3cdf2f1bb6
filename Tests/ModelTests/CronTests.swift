import Model
import Testing

struct `Cron expressions` {
    private static let year2026 = (0..<365).map { CivilDay(number: CivilDay(year: 2026, month: 1, day: 1).number + $0) }

    @Test(
        arguments: [
            ("0 9 * * *", 365), ("0 9 * * MON-FRI", 261), ("0 9 * * 1-5", 261), ("0 9 * * SAT-SUN", 104),
            ("0 9 * * 6-7", 104), ("0 9 * * FRI-MON", 208), ("0 9 * * 0,7", 52), ("0 9 1 * *", 12), ("0 9 31 * *", 7),
            ("0 9 29 2 *", 0), ("0 9 28-31 * *", 41), ("0 9 1 * MON", 63), ("0 9 */2 * MON", 26),
            ("0 9 * jan,Jul *", 62), ("0 9 * */3 *", 123), ("0 9 25/3 * *", 31), ("@daily", 365), ("@midnight", 365),
            ("@weekly", 52), ("@monthly", 12), ("@yearly", 1), ("@annually", 1), ("@hourly", 365),
        ])
    func `include so many days of 2026`(text: String, days: Int) throws {
        let cron = try CronExpression(text)
        #expect(Self.year2026.count { cron.includes($0) } == days)
    }

    @Test(
        arguments: [
            ("0 9 * * *", [540]), ("*/20 0 * * *", [0, 20, 40]), ("5-7,59 1 * * *", [65, 66, 67, 119]),
            ("50/5 23 * * *", [1430, 1435]), ("0-10/5 2,4 * * *", [120, 125, 130, 240, 245, 250]),
            ("@hourly", (0..<24).map { $0 * 60 }),
        ])
    func `name these minutes of a day`(text: String, minutes: [Int]) throws {
        #expect(try CronExpression(text).minutesOfDay == minutes)
    }

    @Test(arguments: [
        ("0 9 30 2 *", "there is no such day in any year"), ("0 9 31 4,6 *", "there is no such day in any year"),
        ("60 * * * *", "\"60\" is not a valid minute (0 to 59), range or step"), ("0 9 * *", "it has 4 fields, not 5"),
        ("0 9 * * MON-", "\"MON-\" is not a valid day of week (0 to 7), range or step"),
        ("0 9 5-1 * *", "\"5-1\" is not a valid day of month (1 to 31), range or step"),
        ("@often", "known words are @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually"),
    ])
    func `say what is wrong with them`(text: String, fault: String) {
        #expect(throws: CronExpression.Fault(fault)) { try CronExpression(text) }
    }
}

struct `Days and wall times` {
    @Test func `days and their dates are each other's inverse over four centuries`() {
        for number in Int64(-40_000)...110_000 {
            let date = CivilDay(number: number).date
            #expect(CivilDay(year: date.year, month: date.month, day: date.day).number == number)
        }
        #expect(CivilDay(year: 1970, month: 1, day: 1).number == 0)
        #expect(CivilDay(year: 2026, month: 11, day: 21).weekday == 6)
        #expect(CivilDay(year: 1969, month: 12, day: 28).weekday == 0)
    }

    @Test(
        arguments: [
            ("2026-12-01T09:00", "2026-12-01T09:00"), ("2026-12-01", "2026-12-01T00:00"),
            ("2024-02-29T23:59:58", "2024-02-29T23:59:58"), ("1969-12-31T23:59", "1969-12-31T23:59"),
            ("2026-02-29T09:00", nil), ("2026-12-01T24:00", nil), ("2026-12-01T09:00Z", nil), ("2026-12-1T09:00", nil),
            ("2026-12-01T09:00+01:00", nil), ("2026-12-01T9:00", nil), ("", nil), ("T", nil), ("run-2026", nil),
        ] as [(String, String?)])
    func `a wall time is read and printed`(text: String, printed: String?) {
        #expect(WallTime(text)?.description == printed)
    }
}
