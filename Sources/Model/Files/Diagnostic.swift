/// A problem in a file that a person wrote: its description, its position, and advice.
package struct Diagnostic: Hashable, Sendable, CustomStringConvertible {
    package enum Severity: String, Sendable, Codable {
        case error, warning
    }

    package var path: String
    /// The line from 1, or 0 if the problem concerns the file as a whole.
    package var line: Int
    package var column: Int
    package var severity: Severity
    /// The problem, with names as in the file: `unknown key "audiance"`.
    package var what: String
    /// The advice: `did you mean "audience"?`. May be empty.
    package var advice: String
    /// The lint rule of a warning that a template may switch off. `nil` for other diagnostics.
    package var rule: LintRule?
    /// Whether a warning concerns only a person who checks the installation, and not each command.
    package var isAdvice = false

    package init(
        path: String, line: Int = 0, column: Int = 0, severity: Severity = .error, what: String, advice: String = "",
        rule: LintRule? = nil
    ) {
        self.path = path
        self.line = line
        self.column = column
        self.severity = severity
        self.what = what
        self.advice = advice
        self.rule = rule
    }

    /// Whether a text with the problem is not saved on a page. A start without values gets them after the campaign is
    /// saved.
    package var preventsSaving: Bool { Self.preventsSaving(severity.rawValue, rule: rule?.rawValue) }

    package static func preventsSaving(_ severity: String, rule: String?) -> Bool {
        severity == Severity.error.rawValue && rule != LintRule.neverFilled.rawValue
    }

    /// `path:line:column: error: what; advice`, followed by the rule in brackets if there is one.
    package var description: String {
        let location = line > 0 ? "\(path):\(line):\(column)" : path
        return "\(location): \(severity.rawValue): \(what)" + (advice.isEmpty ? "" : "; \(advice)")
            + (rule.map { " [\($0.rawValue)]" } ?? "")
    }
}

/// "Did you mean": the candidate nearest to a mistyped word.
package enum Suggestion {
    /// Returns the candidate with the fewest edits (insert, delete, replace, swap of neighbours). The number of edits
    /// is at most a third of the word's length, plus one. Returns `nil` if no candidate is that close, or if the word
    /// is longer than any name.
    package static func nearest(to word: String, among candidates: some Sequence<String>) -> String? {
        guard word.utf8.count <= bytesMax else { return nil }
        let candidates = Array(candidates.prefix(candidatesMax + 1))
        guard candidates.count <= candidatesMax else { return nil }
        let limit = word.count / 3 + 1
        let ranked = candidates.filter { $0.utf8.count <= bytesMax }.map {
            (word: $0, distance: distance(word.lowercased(), $0.lowercased()))
        }
        .filter { $0.distance <= limit }
        return ranked.min { ($0.distance, $0.word) < ($1.distance, $1.word) }?.word
    }

    /// The maximum length of a compared word. The cost of a comparison is proportional to the product of both lengths.
    private static let bytesMax = 100
    private static let candidatesMax = 1000

    private static func distance(_ left: String, _ right: String) -> Int {
        let left = Array(left)
        let right = Array(right)
        var before: [Int] = []
        var previous = Array(0...right.count)
        for row in 0..<left.count {
            var current = [row + 1]
            for column in 0..<right.count {
                let replaced = previous[column] + (left[row] == right[column] ? 0 : 1)
                var best = min(replaced, previous[column + 1] + 1, current[column] + 1)
                let swapped = row > 0 && column > 0 && left[row] == right[column - 1] && left[row - 1] == right[column]
                if swapped { best = min(best, before[column - 1] + 1) }
                current.append(best)
            }
            before = previous
            previous = current
        }
        return previous[right.count]
    }
}
