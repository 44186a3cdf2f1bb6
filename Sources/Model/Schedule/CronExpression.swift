/// Five fields that say at which times of which days something happens: minute, hour, day of month, month, day of week.
///
/// Each is `*`, a number, a name (`MON`, `JAN`), a range, a list of these, or one of them with a step (`*/15`); a week may
/// run over its end (`SAT-SUN`), and Sunday is 0 and 7. `@daily` and its friends stand for five fields. As in every cron,
/// a day that both day fields restrict needs only one of them: `0 9 1 * MON` is the first of the month and every Monday. A
/// field that begins with `*` does not restrict in this sense.
package struct CronExpression: Hashable, Sendable {
    /// Why a text is no cron expression, to stand behind its quotation.
    package struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
        package var description: String

        package init(_ description: String) {
            self.description = description
        }
    }

    /// In rising order, counted from midnight.
    package let minutesOfDay: [Int]
    private let days: CronField
    private let months: CronField
    private let weekdays: CronField

    private static let words = [
        ("@hourly", "0 * * * *"), ("@daily", "0 0 * * *"), ("@midnight", "0 0 * * *"), ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"), ("@yearly", "0 0 1 1 *"), ("@annually", "0 0 1 1 *"),
    ]

    package init(_ text: String) throws(Fault) {
        var fields = text.split(whereSeparator: \.isWhitespace)
        if text.hasPrefix("@") {
            guard let word = Self.words.first(where: { $0.0 == text }) else {
                throw Fault("known words are \(Self.words.map(\.0).joined(separator: ", "))")
            }
            fields = word.1.split(separator: " ")
        }
        guard fields.count == 5 else { throw Fault("it has \(fields.count) fields, not 5") }
        let minutes = try CronField(fields[0], .minute).values
        let hours = try CronField(fields[1], .hour).values
        minutesOfDay = hours.flatMap { hour in minutes.map { hour * 60 + $0 } }
        days = try CronField(fields[2], .dayOfMonth)
        months = try CronField(fields[3], .month)
        weekdays = try CronField(fields[4], .dayOfWeek)
        if weekdays.isOpen, !hasDay { throw Fault("there is no such day in any year") }
    }

    package func includes(_ day: CivilDay) -> Bool {
        let (_, month, dayOfMonth) = day.date
        guard months.contains(Int(month)) else { return false }
        let fitsMonth = days.contains(Int(dayOfMonth))
        let fitsWeek = weekdays.contains(day.weekday)
        return days.isOpen || weekdays.isOpen ? fitsMonth && fitsWeek : fitsMonth || fitsWeek
    }

    /// False for the 30th of February.
    private var hasDay: Bool {
        months.values.contains { month in
            let last = CivilDay.count(ofMonth: Int64(month), year: 2000)
            return days.values.contains { $0 <= last }
        }
    }
}
