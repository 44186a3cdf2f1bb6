import Model

/// Collects what is wrong with one file while it is read, so that everything is reported at once. One per reading of a
/// file, never shared between threads.
final class DiagnosticCollector {
    let path: String
    let lines: SourceLines
    /// Every use of a campaign variable in a template, with its location.
    var variableUses: [VariableUse] = []
    private var collected: [Diagnostic] = []
    private(set) var hasErrors = false
    /// Problems beyond this many are summed up in one: it is probably the wrong file.
    private static let diagnosticsMax = 200

    /// The folder of the file with a slash behind it, empty for the current one.
    var folder: String { path.lastIndex(of: "/").map { String(path[...$0]) } ?? "" }

    init(path: String, text: String = "") {
        self.path = path
        lines = SourceLines(text)
    }

    func error(_ what: String, _ advice: String = "", at location: SourceLocation) {
        add(.error, what, advice, at: location)
    }

    func warning(_ what: String, _ advice: String = "", at location: SourceLocation) {
        add(.warning, what, advice, at: location)
    }

    /// In the order of the file.
    var diagnostics: [Diagnostic] {
        collected.enumerated().sorted { left, right in
            (left.element.line, left.element.column, left.offset)
                < (right.element.line, right.element.column, right.offset)
        }.map(\.element)
    }

    private func add(_ severity: Diagnostic.Severity, _ what: String, _ advice: String, at location: SourceLocation) {
        if severity == .error { hasErrors = true }
        guard collected.count < Self.diagnosticsMax else { return addLast() }
        let found = Diagnostic(
            path: location.source ?? path, line: location.line, column: location.column, severity: severity, what: what,
            advice: advice)
        if !collected.contains(found) { collected.append(found) }
    }

    private func addLast() {
        guard collected.count == Self.diagnosticsMax else { return }
        collected.append(
            Diagnostic(
                path: path, what: "more than \(Self.diagnosticsMax) problems",
                advice: "make sure that it is the right file"))
    }
}

/// One `{{name}}` in a template.
package struct VariableUse: Hashable, Sendable {
    package var name: String
    package var location: SourceLocation
}

/// Where something a person wrote stands, for diagnostics.
package struct SourceLocation: Hashable, Sendable {
    /// From 1; 0 for the file as a whole.
    package var line: Int
    /// From 1, counted in Unicode scalars.
    package var column: Int
    /// Named in place of the file's path when the value came from elsewhere: an environment variable.
    package var source: String?

    package init(line: Int = 0, column: Int = 0, source: String? = nil) {
        self.line = line
        self.column = column
        self.source = source
    }
}
