package import Foundation

/// A local date and time in whole seconds, without a time zone. Each zone reaches it at a different moment.
package struct WallTime: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    /// Seconds since 1970-01-01T00:00 of the same local time.
    package var seconds: Int64

    private enum CodingKeys: String, CodingKey {
        case seconds = "seconds"
    }

    package init(seconds: Int64) {
        self.seconds = seconds
    }

    package init(_ day: CivilDay, minute: Int = 0) {
        seconds = day.number * 86_400 + Int64(minute) * 60
    }

    /// Reads `2026-12-01T09:00`, with or without seconds, and a plain date as its midnight. Returns `nil` for any other
    /// text, including one with a zone or an offset.
    package init?(_ text: some StringProtocol) {
        let halves = text.split(separator: "T", maxSplits: 1, omittingEmptySubsequences: false)
        guard let date = Self.numbers(halves[0], separator: "-", widths: [4, 2, 2]),
            (1...12).contains(date[1]), (1...CivilDay.count(ofMonth: date[1], year: date[0])).contains(date[2])
        else { return nil }
        self.init(CivilDay(year: date[0], month: date[1], day: date[2]))
        guard halves.count == 2 else { return }
        guard
            let time = Self.numbers(halves[1], separator: ":", widths: [2, 2])
                ?? Self.numbers(halves[1], separator: ":", widths: [2, 2, 2]),
            time[0] < 24, time[1] < 60, time.count == 2 || time[2] < 60
        else { return nil }
        seconds += time[0] * 3600 + time[1] * 60 + (time.count == 3 ? time[2] : 0)
    }

    package var day: CivilDay {
        CivilDay(number: (seconds >= 0 ? seconds : seconds - 86_399) / 86_400)
    }

    package var secondOfDay: Int64 { seconds - day.number * 86_400 }

    /// `2026-12-01T09:00`, with seconds only if they are not zero.
    package var description: String {
        let (year, month, day) = day.date
        let second = secondOfDay
        let minutes =
            "\(Self.padded(year, 4))-\(Self.padded(month, 2))-\(Self.padded(day, 2))"
            + "T\(Self.padded(second / 3600, 2)):\(Self.padded(second / 60 % 60, 2))"
        return second % 60 == 0 ? minutes : "\(minutes):\(Self.padded(second % 60, 2))"
    }

    package static func < (left: WallTime, right: WallTime) -> Bool { left.seconds < right.seconds }

    private static func numbers(_ text: some StringProtocol, separator: Character, widths: [Int]) -> [Int64]? {
        let parts = text.split(separator: separator, omittingEmptySubsequences: false)
        guard parts.count == widths.count else { return nil }
        var numbers: [Int64] = []
        for (part, width) in zip(parts, widths) {
            guard part.utf8.count == width, part.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let number = Int64(part)
            else { return nil }
            numbers.append(number)
        }
        return numbers
    }

    private static func padded(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}

/// A day of the Gregorian calendar, without a time zone.
package struct CivilDay: Hashable, Comparable, Sendable {
    /// Days since 1970-01-01.
    package var number: Int64

    package init(number: Int64) {
        self.number = number
    }

    /// - Parameters:
    ///   - month: 1 to 12.
    ///   - day: from 1. A day after the month's end is a day of the next month.
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

    /// The day of the week. 0 is Sunday, as in cron.
    package var weekday: Int {
        let weekday = (number + 4) % 7
        return Int(weekday < 0 ? weekday + 7 : weekday)
    }

    /// Returns the last day of a month.
    package static func count(ofMonth month: Int64, year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    package static func < (left: CivilDay, right: CivilDay) -> Bool { left.number < right.number }
}

/// Conversions between moments and local times of a zone.
extension TimeZone {
    /// Returns the local time at a moment.
    package func wall(at moment: Timestamp) -> WallTime {
        WallTime(seconds: moment.seconds + offset(at: moment.seconds))
    }

    /// Returns the moment of a local time. If the time comes twice, the result is the first moment. If the clocks skip
    /// the time, the result is the moment when they are put forward.
    package func moment(of wall: WallTime) -> Timestamp {
        // Wide enough for every offset and for a change across the date line. No zone changes twice within it.
        let margin: Int64 = 48 * 3600
        let before = offset(at: wall.seconds - margin)
        let after = offset(at: wall.seconds + margin)
        let first = wall.seconds - before
        guard before != after else { return Timestamp(seconds: first) }
        let change = change(from: before, after: wall.seconds - margin, upTo: wall.seconds + margin)
        if first < change { return Timestamp(seconds: first) }
        return Timestamp(seconds: max(wall.seconds - after, change))
    }

    /// Tells whether the clock shows any of these seconds twice, because it is put back over them.
    package func showsTwice(_ start: WallTime, for seconds: Int64) -> Bool {
        let margin: Int64 = 48 * 3600
        let before = offset(at: start.seconds - margin)
        let after = offset(at: start.seconds + margin)
        guard after < before else { return false }
        let change = change(from: before, after: start.seconds - margin, upTo: start.seconds + margin)
        return change + after < start.seconds + seconds && start.seconds < change + before
    }

    private func offset(at seconds: Int64) -> Int64 {
        Int64(secondsFromGMT(for: Date(timeIntervalSince1970: Double(seconds))))
    }

    /// Returns the first second at which the offset is no longer `offset`.
    private func change(from offset: Int64, after start: Int64, upTo end: Int64) -> Int64 {
        var low = start
        var high = end
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if self.offset(at: middle) == offset { low = middle } else { high = middle }
        }
        return high
    }
}
