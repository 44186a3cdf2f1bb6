/// A date and time as a clock on some wall shows it, without saying where: the same in every time zone, at different
/// moments. Whole seconds.
package struct WallTime: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    /// Since 1970-01-01T00:00 on that wall.
    package var seconds: Int64

    package init(seconds: Int64) {
        self.seconds = seconds
    }

    package init(_ day: CivilDay, minute: Int = 0) {
        seconds = day.number * 86_400 + Int64(minute) * 60
    }

    /// Reads `2026-12-01T09:00`, with seconds or without, and a plain date as its midnight. Nil for anything else, a
    /// zone or an offset included.
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

    /// `2026-12-01T09:00`, the seconds only where there are any.
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
