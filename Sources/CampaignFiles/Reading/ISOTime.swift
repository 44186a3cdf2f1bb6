package import Model

/// Dates and times as people and backends write them: `2026-11-01`, `2026-11-01T09:00`. Seconds, fraction and offset
/// are optional, and the default offset is UTC. It parses bytes for speed, because each line of an import may contain
/// two dates.
package enum ISOTime {
    package static func parse(_ text: String) -> Timestamp? {
        let bytes = Array(text.utf8)
        return parse(bytes, bytes.indices)
    }

    package static func parse(_ bytes: [UInt8], _ range: Range<Int>) -> Timestamp? {
        var reader = DigitReader(bytes: bytes, index: range.lowerBound, end: range.upperBound)
        guard let year = reader.number(digits: 4), reader.skip("-"), let month = reader.number(digits: 2),
            reader.skip("-"), let day = reader.number(digits: 2), (1...12).contains(month),
            (1...CivilDay.count(ofMonth: month, year: year)).contains(day)
        else { return nil }
        var milliseconds = CivilDay(year: year, month: month, day: day).number * 86_400_000
        if reader.isAtEnd { return Timestamp(milliseconds: milliseconds) }
        guard reader.skip("T") || reader.skip("t") || reader.skip(" ") else { return nil }
        guard let time = timeOfDay(&reader), let offset = offset(&reader), reader.isAtEnd else { return nil }
        milliseconds += time - offset
        return Timestamp(milliseconds: milliseconds)
    }

    private static func timeOfDay(_ reader: inout DigitReader) -> Int64? {
        guard let hour = reader.number(digits: 2), reader.skip(":"), let minute = reader.number(digits: 2),
            hour < 24, minute < 60
        else { return nil }
        var milliseconds = (hour * 60 + minute) * 60_000
        guard reader.skip(":") else { return milliseconds }
        // A leap second counts as the second before it.
        guard let second = reader.number(digits: 2), second <= 60 else { return nil }
        milliseconds += min(second, 59) * 1000
        guard reader.skip(".") else { return milliseconds }
        return reader.fraction().map { milliseconds + $0 }
    }

    private static func offset(_ reader: inout DigitReader) -> Int64? {
        if reader.isAtEnd || reader.skip("Z") || reader.skip("z") { return 0 }
        let isNegative = reader.skip("-")
        guard isNegative || reader.skip("+"), let hours = reader.number(digits: 2), hours <= 18 else { return nil }
        var minutes: Int64 = 0
        if !reader.isAtEnd {
            _ = reader.skip(":")
            guard let number = reader.number(digits: 2), number < 60 else { return nil }
            minutes = number
        }
        return (isNegative ? -1 : 1) * (hours * 60 + minutes) * 60_000
    }
}

/// Reads numbers of a fixed width and single characters from the front of some bytes.
private struct DigitReader {
    let bytes: [UInt8]
    var index: Int
    let end: Int

    var isAtEnd: Bool { index >= end }

    mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard index < end, UInt32(bytes[index]) == character.value else { return false }
        index += 1
        return true
    }

    mutating func number(digits: Int) -> Int64? {
        guard end - index >= digits else { return nil }
        var number: Int64 = 0
        for _ in 0..<digits {
            guard let digit = nextDigit() else { return nil }
            number = number * 10 + digit
        }
        return number
    }

    /// Returns the digits after the point as milliseconds, and drops further digits.
    mutating func fraction() -> Int64? {
        guard var milliseconds = nextDigit() else { return nil }
        var count = 1
        while let digit = nextDigit() {
            if count < 3 { milliseconds = milliseconds * 10 + digit }
            count += 1
        }
        while count < 3 {
            milliseconds *= 10
            count += 1
        }
        return milliseconds
    }

    private mutating func nextDigit() -> Int64? {
        guard index < end, (0x30...0x39).contains(bytes[index]) else { return nil }
        index += 1
        return Int64(bytes[index - 1] - 0x30)
    }
}
