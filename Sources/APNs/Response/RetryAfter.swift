/// The value of a `retry-after` header (RFC 9110 section 10.2.3). Apple documents no such header. If one arrives, it is
/// obeyed up to a limit (`ProviderProtocol` section 7).
package enum RetryAfter: Hashable, Sendable {
    /// A number of seconds after the response.
    case seconds(Int64)
    /// A moment, in milliseconds since 1970.
    case moment(Int64)

    /// The maximum wait. A load balancer that requests a day must not stop all sending for a day.
    package static let waitMax: Duration = .seconds(3600)
    /// The maximum length of a value, longer than any date. A longer value is ignored.
    static let bytesMax = 40

    /// Returns `nil` if the value is neither a number of seconds nor a date.
    package init?(parsing value: some Collection<UInt8>) {
        guard !value.isEmpty, value.count <= Self.bytesMax, !value.contains(0) else { return nil }
        let text = String(decoding: value, as: UTF8.self)
        if value.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            self = .seconds(Int64(text) ?? .max)
        } else if let moment = HTTPDate.seconds(text) {
            self = .moment(moment * 1000)
        } else {
            return nil
        }
    }

    /// Returns the time to wait from `now`, in milliseconds since 1970: from zero to ``waitMax``.
    package func wait(from now: Int64) -> Duration {
        switch self {
        case .seconds(let seconds): min(.seconds(seconds), Self.waitMax)
        case .moment(let moment) where moment > now:
            min(.milliseconds(moment.subtractingReportingOverflow(now).partialValue), Self.waitMax)
        case .moment: .zero
        }
    }
}

/// Dates in HTTP: IMF-fixdate, and the two older forms that a recipient must accept (RFC 9110 section 5.6.7).
private enum HTTPDate {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Returns the seconds since 1970. `nil` if the text is no date.
    static func seconds(_ text: String) -> Int64? {
        let tokens = text.split { " ,-".contains($0) }.map(String.init)
        switch tokens.count {
        // `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`.
        case 6 where tokens[5] == "GMT": return seconds(tokens[1], tokens[2], tokens[3], tokens[4])
        // `Sun Nov  6 08:49:37 1994`.
        case 5: return seconds(tokens[2], tokens[1], tokens[4], tokens[3])
        default: return nil
        }
    }

    private static func seconds(_ day: String, _ month: String, _ year: String, _ time: String) -> Int64? {
        let clock = time.split(separator: ":").compactMap { Int64($0) }
        guard let month = months.firstIndex(of: month), let day = Int64(day), let written = Int64(year),
            clock.count == 3, (1...31).contains(day), (0...9999).contains(written), clock[0] < 24, clock[1] < 60,
            clock[2] < 61
        else { return nil }
        let year = written < 70 ? written + 2000 : written < 100 ? written + 1900 : written
        return days(year, Int64(month), day) * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2]
    }

    /// Returns the days since 1970. The year is counted from March on, so that a leap day is its last day.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let year = month < 2 ? year - 1 : year
        let fromMarch = (month + 10) % 12
        return year * 365 + year / 4 - year / 100 + year / 400 + (fromMarch * 153 + 2) / 5 + day - 719_469
    }
}
