package import Foundation

/// A moment as whole milliseconds since 1970-01-01T00:00:00Z, the one unit of time in the store and on every page.
package struct Timestamp: Hashable, Comparable, Sendable, Codable {
    package var milliseconds: Int64

    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    package init(_ date: Date) {
        milliseconds = Int64((date.timeIntervalSince1970 * 1000).rounded())
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

    /// ISO 8601 in UTC, with milliseconds only where there are any: `2026-11-21T09:00:00Z`.
    package var iso8601: String {
        let whole = Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
        let fraction = milliseconds - seconds * 1000
        // By hand: the style drops what binary fractions lose, so that .382 prints as .381.
        return fraction == 0 ? whole : "\(whole.dropLast()).\(String(1000 + fraction).dropFirst())Z"
    }

    package static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.milliseconds < right.milliseconds
    }

    package static func + (moment: Timestamp, duration: Duration) -> Timestamp {
        Timestamp(milliseconds: moment.milliseconds + duration.wholeMilliseconds)
    }

    package static func - (moment: Timestamp, duration: Duration) -> Timestamp {
        Timestamp(milliseconds: moment.milliseconds - duration.wholeMilliseconds)
    }

    package static func - (later: Timestamp, earlier: Timestamp) -> Duration {
        .milliseconds(later.milliseconds - earlier.milliseconds)
    }
}

extension Duration {
    /// Whole milliseconds, the fraction dropped.
    package var wholeMilliseconds: Int64 {
        components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    }

    package var inSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}

extension Int64 {
    fileprivate func quotientFloor(_ divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
