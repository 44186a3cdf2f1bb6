import Campaigns
import Foundation
import Model

/// A file's text with its problems by line, editable or read-only.
struct FileEditor: Sendable {
    struct Line: Sendable {
        var number: Int
        /// `error`, `warning` or empty.
        var mark: String
    }

    /// A problem and its line.
    struct Trouble: Sendable {
        /// The text of the line, with the marked word apart.
        struct Excerpt: Sendable {
            var before: String
            var marked: String
            var after: String
        }

        var severity: String
        /// A place such as `line 14, column 9`. It contains the file's name if the problem is in another file.
        var place: String
        var line: Int
        var column = 0
        /// The path of the file. Empty for a problem of the form.
        var path = ""
        /// The message of `fanfare validate`.
        var summary: String
        /// Whether a text with this problem is not saved.
        var isObstacle = false
        /// The identifier of the form's field that the problem concerns. `nil` if the form does not show it.
        var fieldID: String?
        var excerpt: Excerpt?
    }

    /// A conflict with a text that another user saved in the meantime.
    struct Conflict: Sendable {
        struct Line: Sendable {
            var text: String
            var isOther: Bool
        }

        var summary: String
        var lines: [Line]
        /// The tag of the other user's text. Saving over that text sends this tag. Empty if that text no longer exists.
        var etag: String
    }

    /// A value of another form of the page, which a check or a save sends along, so that the page shows it again.
    struct Carried: Sendable {
        var name: String
        var value: String
    }

    var campaign: String
    var carried: [Carried] = []
    var kind: String
    var file: String
    var path: String
    /// The identifier of the file's fields on the page.
    var id: String
    var text: String
    /// Whether the file's content can be shown.
    var hasText: Bool
    /// The tag of the text that was opened. Empty if the file is to be new.
    var etag: String
    /// The number of lines of the field. All lines are visible, so that their numbers stand beside them.
    var rows: Int
    var gutter: [Line]
    var troubles: [Trouble]
    var summary: String
    var isWrong: Bool
    var isEditable: Bool
    /// The reason why the file is read-only.
    var reason: String?
    var isSaved: Bool
    /// Whether the text is neither in the file nor waiting for release. If so, the browser asks before the page is
    /// left.
    var isUnsaved: Bool
    var conflict: Conflict?
    /// The template, and the other campaigns that use it. `nil` for another file, and if no other campaign does.
    var shared: SharedTemplate?
    /// The reasons why the text was not saved, one per line.
    var refusal: [String]

    /// - Parameters:
    ///   - text: the file's text, or `nil` if the content is not text. Such a file stays as it is.
    ///   - problems: the problems of this file and of those that belong to it.
    init(
        _ kind: ManageFiles.Kind, file: String, path: String, of campaign: String, text: String?, etag: String?,
        problems: [ValidationResult.Problem], readOnly: String?
    ) {
        let hasText = text != nil
        let reason = hasText ? readOnly : FileRefusal.noText(file: path).description
        let text = text ?? ""
        self.campaign = campaign
        self.kind = kind.rawValue
        self.file = file
        self.path = path
        id = Self.id(kind, file)
        self.text = text
        self.hasText = hasText
        self.etag = etag ?? ""
        let lines = text.plainLines
        rows = max(lines.count + 1, 6)
        let own = problems.filter { $0.path == path }
        let marks = Dictionary(own.map { ($0.line, $0.severity) }) { $0 == "error" ? $0 : $1 }
        gutter = (1...rows).map { Line(number: $0, mark: marks[$0] ?? "") }
        troubles = problems.map { Trouble($0, in: $0.path == path ? lines : nil) }.errorsFirst
        isWrong = troubles.errors > 0
        summary = troubles.summary
        isEditable = reason == nil
        self.reason = reason
        isSaved = false
        isUnsaved = false
        refusal = []
    }

    /// Shows that the text was not saved, with the errors that refused it.
    mutating func refuse(_ diagnostics: [Diagnostic]) {
        refusal = ["Not saved: correct the errors first."]
        troubles = troubles.with(diagnostics, of: path, lines: text.plainLines)
        isWrong = troubles.errors > 0
        summary = troubles.summary
    }

    /// Returns an identifier for use in an address.
    static func id(_ kind: ManageFiles.Kind, _ file: String) -> String {
        String(
            String.UnicodeScalarView(
                "\(kind.rawValue)-\(file)".unicodeScalars.filter {
                    $0 == "-" || $0.properties.isAlphabetic || $0.properties.numericType != nil
                }))
    }

    /// Returns a summary such as `no problem`, `2 errors` or `1 error and 3 warnings`.
    static func summary(errors: Int, warnings: Int) -> String {
        let parts = [(errors, "error"), (warnings, "warning")].filter { $0.0 > 0 }
            .map { "\($0.0) \($0.1)\($0.0 == 1 ? "" : "s")" }
        return parts.isEmpty ? "no problem" : parts.joined(separator: " and ")
    }
}

extension [FileEditor.Trouble] {
    var errors: Int { count { $0.severity == "error" } }
    /// Both kinds keep their order.
    var errorsFirst: Self { filter { $0.severity == "error" } + filter { $0.severity != "error" } }
    var summary: String { FileEditor.summary(errors: errors, warnings: count - errors) }

    /// Returns the problems with those of a refusal that they lack.
    ///
    /// - Parameters:
    ///   - path: the path of the editor's file. Empty if there is no editor.
    ///   - lines: the lines of the editor's text.
    func with(_ diagnostics: [Diagnostic], of path: String = "", lines: [String] = []) -> Self {
        let refused = diagnostics.map { FileEditor.Trouble(.init($0), in: $0.path == path ? lines : nil) }
        return (self + refused.filter { new in !contains { $0.place == new.place && $0.summary == new.summary } })
            .errorsFirst
    }
}

/// A template that several campaigns use, so that a change of its text changes all of them.
struct SharedTemplate: Sendable {
    var template: String
    /// The other campaigns.
    var users: [TemplatePage.User]

    /// - Parameters:
    ///   - template: the template, with the campaigns that the visitor may see.
    ///   - campaign: the campaign that the page shows.
    init?(_ template: TemplateResult, besides campaign: String) {
        let others = template.campaigns.filter { $0 != campaign }
        guard !others.isEmpty else { return nil }
        self.template = template.name
        users = others.map(TemplatePage.User.init)
    }
}

extension FileEditor.Trouble {
    /// - Parameter lines: the lines of the editor's text. `nil` if the problem is in another file.
    init(_ problem: ValidationResult.Problem, in lines: [String]?) {
        severity = problem.severity
        (line, column, path) = (problem.line, problem.column, problem.path)
        isObstacle = Diagnostic.preventsSaving(problem.severity, rule: problem.rule)
        let spot = problem.line > 0 ? "line \(problem.line), column \(problem.column)" : "the whole file"
        let file = (problem.path as NSString).lastPathComponent
        place = lines == nil ? "\(file), \(spot)" : spot
        summary = (problem.what + (problem.advice.isEmpty ? "" : "; \(problem.advice)")).onPage
        if let lines, lines.indices.contains(problem.line - 1) {
            excerpt = Excerpt(lines[problem.line - 1], column: problem.column)
        }
    }
}

extension FileEditor.Trouble.Excerpt {
    /// - Parameter column: the column, counted from 1 in Unicode scalars.
    fileprivate init(_ line: String, column: Int) {
        let scalars = Array(line.unicodeScalars)
        let start = min(max(column - 1, 0), scalars.count)
        let end = scalars[start...].firstIndex { $0 == ":" || $0 == "," || $0 == "}" || $0.properties.isWhitespace }
        let stop = max(end ?? scalars.count, min(start + 1, scalars.count))
        func text(_ part: ArraySlice<Unicode.Scalar>) -> String { String(String.UnicodeScalarView(part)) }
        before = text(scalars[..<start])
        marked = text(scalars[start..<stop])
        after = text(scalars[stop...])
    }
}

extension FileEditor.Conflict {
    /// - Parameter theirs: the text that is there now, or `nil` if there is none.
    init(_ summary: String, yours: String, theirs: String?, etag: String = "") {
        self.summary = summary
        self.etag = etag
        let own = yours.plainLines
        let other = (theirs ?? "").plainLines
        let changed = Self.changed(in: other, from: own)
        lines = other.enumerated().map { Line(text: $1, isOther: changed.contains($0)) }
    }

    /// The maximum number of compared lines, because a difference costs the square of what differs. Beyond it, all
    /// lines of the middle count as changed.
    private static let linesCompared = 1000

    private static func changed(in other: [String], from own: [String]) -> Set<Int> {
        let head = zip(other, own).prefix { $0 == $1 }.count
        let tail = zip(other.dropFirst(head).reversed(), own.dropFirst(head).reversed()).prefix { $0 == $1 }.count
        let (theirs, mine) = (other.dropFirst(head).dropLast(tail), own.dropFirst(head).dropLast(tail))
        guard theirs.count + mine.count <= linesCompared else { return Set(theirs.indices) }
        return Set(
            Array(theirs).difference(from: Array(mine)).insertions.map { change in
                switch change {
                case .insert(let offset, _, _), .remove(let offset, _, _): head + offset
                }
            })
    }
}
