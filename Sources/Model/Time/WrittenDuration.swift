/// Durations as people write them in files: `500ms`, `90s`, `45m`, `4h`, `30d`, or a sum such as `1h30m`.
package enum WrittenDuration {
    private static let unitMilliseconds: [(name: String, milliseconds: Int64)] = [
        ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000),
    ]

    /// Returns nil for anything but one or more of number and unit; `0` alone is allowed and means none.
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
            guard !overflow, !overflowOfSum else { return nil }
            total = sum
            rest = rest.dropFirst(digits.count + unit.count)
        }
        return .milliseconds(total)
    }

    /// The largest units first, at most two of them: `1h30m`, `2d4h`, `45s`, `250ms`.
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
