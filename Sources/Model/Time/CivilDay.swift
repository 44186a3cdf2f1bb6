/// A day of the Gregorian calendar, nowhere in particular.
package struct CivilDay: Hashable, Comparable, Sendable {
    /// Days since 1970-01-01.
    package var number: Int64

    package init(number: Int64) {
        self.number = number
    }

    /// - Parameters:
    ///   - month: 1 to 12.
    ///   - day: from 1; one beyond the month's end is a day of the next month.
    package init(year: Int64, month: Int64, day: Int64) {
        // March counts as the first month, so that leap days come last.
        let year = month <= 2 ? year - 1 : year
        let era = (year >= 0 ? year : year - 399) / 400
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        number = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    package var date: (year: Int64, month: Int64, day: Int64) {
        let shifted = number + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let year = yearOfEra + era * 400 + (month >= 10 ? 1 : 0)
        return (year, month >= 10 ? month - 9 : month + 3, dayOfYear - (153 * month + 2) / 5 + 1)
    }

    /// 0 is Sunday, as in cron.
    package var weekday: Int {
        let weekday = (number + 4) % 7
        return Int(weekday < 0 ? weekday + 7 : weekday)
    }

    /// The last day of a month.
    package static func count(ofMonth month: Int64, year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    package static func < (left: CivilDay, right: CivilDay) -> Bool { left.number < right.number }
}
