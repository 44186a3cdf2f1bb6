/// Whether a text has the form of a cron expression: five fields of numbers, names, ranges, lists and steps, or one of
/// the `@daily` words. What it means is decided where occurrences are computed.
enum CronShape {
    static let words = ["@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"]

    private struct FieldRule {
        var name: String
        var range: ClosedRange<Int>
        /// Stand for the numbers from the start of the range on.
        var names: [String] = []
    }

    private static let rules = [
        FieldRule(name: "minute", range: 0...59),
        FieldRule(name: "hour", range: 0...23),
        FieldRule(name: "day of month", range: 1...31),
        FieldRule(
            name: "month", range: 1...12,
            names: ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]),
        FieldRule(name: "day of week", range: 0...7, names: ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]),
    ]

    /// What is wrong, or nil.
    static func problem(in text: String) -> String? {
        if text.hasPrefix("@") {
            return words.contains(text) ? nil : "known words are \(words.joined(separator: ", "))"
        }
        let fields = text.split(whereSeparator: \.isWhitespace)
        guard fields.count == rules.count else { return "it has \(fields.count) fields, not 5" }
        for (field, rule) in zip(fields, rules) {
            for part in field.split(separator: ",", omittingEmptySubsequences: false) where !fits(part, rule) {
                let limits = "\(rule.range.lowerBound) to \(rule.range.upperBound)"
                return "\(quoted(String(part))) is no \(rule.name) (\(limits)), range or step"
            }
        }
        return nil
    }

    private static func fits(_ part: Substring, _ rule: FieldRule) -> Bool {
        let pieces = part.split(separator: "/", omittingEmptySubsequences: false)
        guard let base = pieces.first, pieces.count <= 2 else { return false }
        if pieces.count == 2 {
            guard let step = UInt(pieces[1]), step >= 1, step <= rule.range.upperBound else { return false }
        }
        if base == "*" { return true }
        let ends = base.split(separator: "-", omittingEmptySubsequences: false).map { number($0, rule) }
        switch ends.count {
        case 1: return ends[0] != nil
        case 2:
            guard let from = ends[0], let to = ends[1] else { return false }
            // A week may run over its end: SAT-SUN.
            return from <= to || rule.range.upperBound == 7
        default: return false
        }
    }

    private static func number(_ text: Substring, _ rule: FieldRule) -> Int? {
        if let index = rule.names.firstIndex(of: text.uppercased()) { return rule.range.lowerBound + index }
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text) else {
            return nil
        }
        return rule.range.contains(number) ? number : nil
    }
}
