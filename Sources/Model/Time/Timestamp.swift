package import Foundation

/// A moment as whole milliseconds since 1970-01-01T00:00:00Z. The store and all pages use this unit.
package struct Timestamp: Hashable, Comparable, Sendable, Codable {
    package var milliseconds: Int64

    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    package init(seconds: Int64) {
        self.init(milliseconds: seconds.saturatingProduct(1000))
    }

    package init(_ date: Date) {
        let exact = (date.timeIntervalSince1970 * 1000).rounded()
        milliseconds = Int64(exactly: exact) ?? (exact > 0 ? .max : .min)
    }

    package init(from decoder: any Decoder) throws {
        milliseconds = try decoder.singleValueContainer().decode(Int64.self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(milliseconds)
    }

    /// Whole seconds, rounded down: the unit of `apns-expiration` and of a provider token's `iat`.
    package var seconds: Int64 { milliseconds.quotientFloor(1000) }

    package var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }

    /// ISO 8601 in UTC. Milliseconds appear only if they are not zero: `2026-11-21T09:00:00Z`.
    package var iso8601: String {
        let whole = Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
        let fraction = milliseconds &- seconds &* 1000
        // The format style is not used for the fraction: it truncates the binary fraction of the date, and prints .382
        // as .381.
        return fraction == 0 ? whole : "\(whole.dropLast()).\(String(1000 + fraction).dropFirst())Z"
    }

    package static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.milliseconds < right.milliseconds
    }

    /// Arithmetic saturates at the first and the last representable moment: an overflow must not end the process.
    package static func + (moment: Timestamp, duration: Duration) -> Timestamp {
        Timestamp(milliseconds: moment.milliseconds.saturatingSum(duration.wholeMilliseconds))
    }

    package static func - (moment: Timestamp, duration: Duration) -> Timestamp {
        Timestamp(milliseconds: moment.milliseconds.saturatingDifference(duration.wholeMilliseconds))
    }

    package static func - (later: Timestamp, earlier: Timestamp) -> Duration {
        .milliseconds(later.milliseconds.saturatingDifference(earlier.milliseconds))
    }
}

extension Duration {
    /// Whole milliseconds without the fraction. A longer duration gives the largest number.
    package var wholeMilliseconds: Int64 {
        components.seconds.saturatingProduct(1000).saturatingSum(components.attoseconds / 1_000_000_000_000_000)
    }

    /// Whole microseconds without the fraction. A longer duration gives the largest number.
    package var wholeMicroseconds: Int64 {
        components.seconds.saturatingProduct(1_000_000).saturatingSum(components.attoseconds / 1_000_000_000_000)
    }

    package var inSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}

extension Int64 {
    /// Returns the sum, or the largest or smallest number if the sum is beyond it.
    package func saturatingSum(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other > 0 ? .max : .min) : sum
    }

    fileprivate func saturatingDifference(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other > 0 ? .min : .max) : difference
    }

    fileprivate func saturatingProduct(_ other: Int64) -> Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: other)
        return overflow ? ((self > 0) == (other > 0) ? .max : .min) : product
    }

    /// Returns the quotient, rounded down.
    package func quotientFloor(_ divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}

/// Durations as written in files: `500ms`, `90s`, `45m`, `4h`, `30d`, or a sum such as `1h30m`.
package enum WrittenDuration {
    /// 1,000 years. A present moment plus a written duration therefore always has a year of four digits.
    package static let longest = Duration.seconds(365_000 * 86_400)

    private static let unitMilliseconds: [(name: String, milliseconds: Int64)] = [
        ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000),
    ]

    /// Returns `nil` unless the text is one or more pairs of number and unit, and at most ``longest``. `0` alone is
    /// allowed and means zero.
    package static func parse(_ text: some StringProtocol) -> Duration? {
        if text == "0" { return .zero }
        var total: Int64 = 0
        var rest = text[...]
        guard !rest.isEmpty else { return nil }
        while !rest.isEmpty {
            let digits = rest.prefix { $0.isASCII && $0.isNumber }
            let unit = rest.dropFirst(digits.count).prefix { $0.isLetter }
            guard let number = Int64(digits), let match = unitMilliseconds.first(where: { $0.name == unit }) else {
                return nil
            }
            let (product, overflow) = number.multipliedReportingOverflow(by: match.milliseconds)
            let (sum, overflowOfSum) = total.addingReportingOverflow(product)
            guard !overflow, !overflowOfSum, sum <= longest.wholeMilliseconds else { return nil }
            total = sum
            rest = rest.dropFirst(digits.count + unit.count)
        }
        return .milliseconds(total)
    }

    /// Returns the text with the largest units first, at most two of them: `1h30m`, `2d4h`, `45s`, `250ms`.
    package static func text(_ duration: Duration) -> String {
        var rest = duration.wholeMilliseconds
        guard rest > 0 else { return "0s" }
        var parts: [String] = []
        for unit in unitMilliseconds.reversed() where unit.name != "w" && rest >= unit.milliseconds {
            guard parts.count < 2 else { break }
            if unit.name == "ms", !parts.isEmpty { break }
            parts.append("\(rest / unit.milliseconds)\(unit.name)")
            rest %= unit.milliseconds
        }
        return parts.joined()
    }
}
