/// One problem of a file a person wrote: what is wrong, where, and what to do about it.
package struct Diagnostic: Hashable, Sendable, CustomStringConvertible {
    package enum Severity: String, Sendable, Codable {
        case error, warning
    }

    package var path: String
    /// From 1; 0 when the problem is about the file as a whole.
    package var line: Int
    package var column: Int
    package var severity: Severity
    /// What is wrong, naming the thing as the file names it: `unknown key "audiance"`.
    package var what: String
    /// What to do: `did you mean "audience"?`. May be empty.
    package var advice: String

    package init(
        path: String, line: Int = 0, column: Int = 0, severity: Severity = .error, what: String, advice: String = ""
    ) {
        self.path = path
        self.line = line
        self.column = column
        self.severity = severity
        self.what = what
        self.advice = advice
    }

    /// `path:line:column: error: what; advice`.
    package var description: String {
        let place = line > 0 ? "\(path):\(line):\(column)" : path
        return "\(place): \(severity.rawValue): \(what)" + (advice.isEmpty ? "" : "; \(advice)")
    }
}
