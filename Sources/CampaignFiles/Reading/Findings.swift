import Model

/// Collects what is wrong with one file while it is read, so that everything is reported at once. Not shared between
/// threads: one reading, one collection.
final class Findings {
    let path: String
    let lines: SourceLines
    /// Every use of a campaign variable in a template, with its place.
    var variableUses: [VariableUse] = []
    private var collected: [Diagnostic] = []
    private(set) var hasErrors = false
    /// A file with more problems than this is the wrong file.
    private static let diagnosticsMax = 200

    /// The folder of the file with a slash behind it, empty for the current one.
    var folder: String { path.lastIndex(of: "/").map { String(path[...$0]) } ?? "" }

    init(path: String, text: String = "") {
        self.path = path
        lines = SourceLines(text)
    }

    func error(_ what: String, _ advice: String = "", at place: Place) {
        add(.error, what, advice, at: place)
    }

    func warning(_ what: String, _ advice: String = "", at place: Place) {
        add(.warning, what, advice, at: place)
    }

    /// In the order of the file.
    var diagnostics: [Diagnostic] {
        collected.enumerated().sorted { left, right in
            (left.element.line, left.element.column, left.offset)
                < (right.element.line, right.element.column, right.offset)
        }.map(\.element)
    }

    private func add(_ severity: Diagnostic.Severity, _ what: String, _ advice: String, at place: Place) {
        if severity == .error { hasErrors = true }
        guard collected.count < Self.diagnosticsMax else { return addLast() }
        let found = Diagnostic(
            path: place.source ?? path, line: place.line, column: place.column, severity: severity, what: what,
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
    package var place: Place
}
