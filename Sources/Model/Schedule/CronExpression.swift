/// A cron expression with five fields: minute, hour, day of month, month, day of week.
///
/// Each field is `*`, a number, a name (`MON`, `JAN`), a range, a list of these, or one of them with a step (`*/15`). A
/// weekday range may cross the end of the week (`SAT-SUN`), and Sunday is 0 and 7. `@daily` and similar words stand for
/// five fields. If both day fields restrict the day, a day needs to match only one of them, as in every cron. `0 9 1 *
/// MON` means the first of the month and every Monday. A field that begins with `*` is no restriction in this sense.
package struct CronExpression: Hashable, Sendable {
    /// The reason why a text is no cron expression, to print after the quoted text.
    package struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
        package var description: String

        package init(_ description: String) {
            self.description = description
        }
    }

    /// The allowed minutes in rising order, counted from midnight.
    package let minutesOfDay: [Int]
    private let days: CronField
    private let months: CronField
    private let weekdays: CronField

    private static let aliases = [
        ("@hourly", "0 * * * *"), ("@daily", "0 0 * * *"), ("@midnight", "0 0 * * *"), ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"), ("@yearly", "0 0 1 1 *"), ("@annually", "0 0 1 1 *"),
    ]

    package init(_ text: String) throws(Fault) {
        var fields = text.split(whereSeparator: \.isWhitespace)
        if text.hasPrefix("@") {
            guard let word = Self.aliases.first(where: { $0.0 == text }) else {
                throw Fault("known words are \(Self.aliases.map(\.0).joined(separator: ", "))")
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

    /// Whether at least one allowed day exists. False for the 30th of February.
    private var hasDay: Bool {
        months.values.contains { month in
            let last = CivilDay.count(ofMonth: Int64(month), year: 2000)
            return days.values.contains { $0 <= last }
        }
    }
}

/// The numbers that one field of a cron expression allows.
struct CronField: Hashable, Sendable {
    struct Kind: Sendable {
        var name: String
        var range: ClosedRange<Int>
        /// The names of the numbers, the first one for the start of the range.
        var names: [String] = []

        static let minute = Kind(name: "minute", range: 0...59)
        static let hour = Kind(name: "hour", range: 0...23)
        static let dayOfMonth = Kind(name: "day of month", range: 1...31)
        static let month = Kind(
            name: "month", range: 1...12,
            names: ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"])
        /// Sunday is 0 and 7.
        static let dayOfWeek = Kind(
            name: "day of week", range: 0...7, names: ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"])

        var isWeek: Bool { range.upperBound == 7 }
    }

    /// One bit per number.
    private var bits: UInt64 = 0
    /// Whether the field begins with `*`.
    let isOpen: Bool

    init(_ text: Substring, _ kind: Kind) throws(CronExpression.Fault) {
        isOpen = text.hasPrefix("*")
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let numbers = Self.numbers(part, kind) else {
                let limits = "\(kind.range.lowerBound) to \(kind.range.upperBound)"
                throw CronExpression.Fault(
                    "\"\(part)\" is not a valid \(kind.name) (\(limits)), range or step")
            }
            for number in numbers { bits |= 1 << UInt64(kind.isWeek ? number % 7 : number) }
        }
    }

    func contains(_ number: Int) -> Bool { bits & 1 << UInt64(number) != 0 }

    /// The allowed numbers in rising order.
    var values: [Int] { (0..<64).filter(contains) }

    private static func numbers(_ part: Substring, _ kind: Kind) -> StrideThrough<Int>? {
        let pieces = part.split(separator: "/", omittingEmptySubsequences: false)
        guard let base = pieces.first, pieces.count <= 2 else { return nil }
        var step = 1
        if pieces.count == 2 {
            guard let written = UInt(pieces[1]), written >= 1, written <= kind.range.upperBound else { return nil }
            step = Int(written)
        }
        guard let range = range(base, kind, isStepped: pieces.count == 2) else { return nil }
        return stride(from: range.lowerBound, through: range.upperBound, by: step)
    }

    /// Returns the range of the numbers. A range across the end of the week extends beyond 7, so take its numbers
    /// modulo 7.
    private static func range(_ text: Substring, _ kind: Kind, isStepped: Bool) -> ClosedRange<Int>? {
        if text == "*" { return kind.isWeek ? 0...6 : kind.range }
        let ends = text.split(separator: "-", omittingEmptySubsequences: false).map { number($0, kind) }
        guard let first = ends.first, let from = first else { return nil }
        switch ends.count {
        // `5/15` means from 5 to the end.
        case 1: return isStepped ? from...max(from, kind.isWeek ? 6 : kind.range.upperBound) : from...from
        case 2:
            guard let to = ends[1] else { return nil }
            if from <= to { return from...to }
            return kind.isWeek ? from...(to + 7) : nil
        default: return nil
        }
    }

    private static func number(_ text: Substring, _ kind: Kind) -> Int? {
        if let index = kind.names.firstIndex(of: text.uppercased()) { return kind.range.lowerBound + index }
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text) else {
            return nil
        }
        return kind.range.contains(number) ? number : nil
    }
}
