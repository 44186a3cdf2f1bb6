import Model
import Yams

/// Reads YAML into a ``FileNode``; no other file imports the YAML library.
///
/// Bounds: 64 levels of nesting and 100,000 values, aliases counted each time they are used.
struct YAMLDocument {
    private static let depthMax = 64
    private static let nodesMax = 100_000
    private static let duplicatesMax = 200

    private let collector: DiagnosticCollector
    private var nodes = 0
    /// The original first characters of keys, by the private-use character that replaced them; see ``compose(_:)``.
    private var exchanged: [Unicode.Scalar: Unicode.Scalar] = [:]

    /// Nil when the text is not YAML (reported to `findings`) or holds nothing at all (not reported).
    static func read(_ text: String, into collector: DiagnosticCollector) -> FileNode? {
        var document = YAMLDocument(collector: collector)
        guard let root = document.compose(text) else { return nil }
        return document.convert(root, depth: 0)
    }

    private init(collector: DiagnosticCollector) {
        self.collector = collector
    }

    /// The library stops at the first key that stands twice. To report the other problems too, the first character of one
    /// of the two is replaced by a private-use character (columns stay the same) and the text is read again.
    private mutating func compose(_ text: String) -> Yams.Node? {
        var text = text
        for attempt in 0...Self.duplicatesMax {
            do {
                return try Yams.compose(yaml: text)
            } catch YamlError.duplicatedKeysInMapping(let names, let context) {
                let location = SourceLocation(line: context.mark.line, column: context.mark.column)
                guard attempt < Self.duplicatesMax, exchangeKey(at: location, in: &text, attempt: attempt) else {
                    collector.error(
                        "key \(quoted(names.first ?? "")) stands twice", "remove one of the two", at: location)
                    return nil
                }
            } catch {
                report(error, text: text)
                return nil
            }
        }
        return nil
    }

    private mutating func exchangeKey(at location: SourceLocation, in text: inout String, attempt: Int) -> Bool {
        guard var index = collector.lines.index(of: location) else { return false }
        var scalars = Array(text.unicodeScalars)
        if scalars[index] == "\"" || scalars[index] == "'" { index += 1 }
        guard index < scalars.count, exchanged[scalars[index]] == nil,
            "\"'[{&*".unicodeScalars.contains(scalars[index]) == false,
            let standIn = Unicode.Scalar(UInt32(0xF_0000 + attempt))
        else { return false }
        exchanged[standIn] = scalars[index]
        scalars[index] = standIn
        text = String(String.UnicodeScalarView(scalars))
        return true
    }

    private mutating func convert(_ node: Yams.Node, depth: Int) -> FileNode? {
        let location = node.mark.map { SourceLocation(line: $0.line, column: $0.column) } ?? SourceLocation()
        nodes += 1
        guard depth < Self.depthMax, nodes < Self.nodesMax else {
            let what = depth < Self.depthMax ? "more than \(Self.nodesMax) values" : "nested too deeply"
            collector.error(what, "make the file simpler", at: location)
            return nil
        }
        switch node {
        case .scalar(let scalar):
            let isPlain = scalar.style == .plain || scalar.style == .any
            return FileNode(content: .scalar(scalar.string), location: location, isPlain: isPlain)
        case .sequence(let sequence):
            let parts = sequence.compactMap { convert($0, depth: depth + 1) }
            return FileNode(content: .list(parts), location: location, isPlain: false)
        case .mapping(let mapping):
            return FileNode(content: .object(members(of: mapping, depth: depth)), location: location, isPlain: false)
        case .alias:
            return nil
        }
    }

    private mutating func members(of mapping: Yams.Node.Mapping, depth: Int) -> [FileNode.Member] {
        var members: [FileNode.Member] = []
        for (key, value) in mapping {
            let location = key.mark.map { SourceLocation(line: $0.line, column: $0.column) } ?? SourceLocation()
            guard let name = key.scalar?.string else {
                collector.error(
                    "a key must be a text", "put texts with {{placeholders}} or brackets in quotes", at: location)
                continue
            }
            // As a key in quotes it is one like any other.
            guard name != "<<" || key.scalar?.style != .plain else {
                collector.error(
                    "merge keys (<<) are not supported",
                    "write the keys out here; an alias (*name) may stand for a whole value", at: location)
                continue
            }
            guard let value = convert(value, depth: depth + 1) else { continue }
            members.append(FileNode.Member(key: original(name), location: location, value: value))
        }
        return members
    }

    private func original(_ name: String) -> String {
        guard let first = name.unicodeScalars.first, let was = exchanged[first] else { return name }
        return String(was) + String(name.unicodeScalars.dropFirst())
    }
}

extension YAMLDocument {
    private func report(_ error: any Error, text: String) {
        switch error {
        case YamlError.scanner(let context?, let problem, _, _) where problem.contains("end of stream"):
            let location = SourceLocation(line: context.mark.line, column: context.mark.column)
            collector.error("not valid YAML: a text begins here and does not end", "close its quotes", at: location)
        case YamlError.scanner(_, let problem, let mark, _), YamlError.parser(_, let problem, let mark, _),
            YamlError.composer(_, let problem, let mark, _):
            let location = SourceLocation(line: mark.line, column: mark.column)
            collector.error("not valid YAML: \(problem)", advice(for: problem, at: location), at: location)
        case YamlError.reader(let problem, let offset, _, _):
            let before = text.prefix(offset ?? 0)
            let line = before.count { $0.isNewline } + 1
            let column = before.reversed().prefix { !$0.isNewline }.count + 1
            collector.error(
                "not valid YAML: \(problem)", "remove the character", at: SourceLocation(line: line, column: column))
        default:
            collector.error("not valid YAML", "", at: SourceLocation())
        }
    }

    private func advice(for problem: String, at location: SourceLocation) -> String {
        let line = collector.lines.line(location.line)
        if line.contains("{{") { return "put texts with {{placeholders}} in quotes" }
        if line.contains("\t") { return "indent with blanks, not with tabs" }
        if problem.contains("mapping values") { return "put texts that hold a colon and a blank in quotes" }
        if problem.contains("cannot start any token") { return "put the text in quotes" }
        if problem.contains("another document") { return "remove the line --- and what follows it" }
        return "look at the indentation and the quotes here and above"
    }
}

/// A value of a YAML file with its location, independent of the YAML library.
struct FileNode: Sendable {
    enum Content: Sendable {
        case scalar(String)
        case list([FileNode])
        case object([Member])
    }

    /// One `key: value`, in the order written; a key that stands twice is two members.
    struct Member: Sendable {
        var key: String
        var location: SourceLocation
        var value: FileNode
    }

    var content: Content
    var location: SourceLocation
    /// Written without quotes, so that `2` may be a number and `true` a boolean.
    var isPlain: Bool

    /// The text of a scalar exactly as written, `no` and `+1` included.
    var text: String? {
        if case .scalar(let text) = content { text } else { nil }
    }

    /// `key:` with nothing behind it, `~` or `null`.
    var isNothing: Bool {
        guard isPlain, let text else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(text)
    }

    /// What it is, in the words of a diagnostic: "expected a number, found …".
    var found: String {
        switch content {
        case .list: return "a list"
        case .object: return "an object"
        case .scalar(let text):
            if isNothing { return "nothing" }
            guard isPlain else { return "the text \(quoted(text))" }
            if text == "true" || text == "false" { return text }
            return Double(text) == nil ? quoted(text) : "the number \(text)"
        }
    }
}

/// A text of the user in a message: in quotes, on one line, cut to 60 characters.
func quoted(_ text: String) -> String {
    let line = text.replacing("\n", with: " ")
    return line.count > 60 ? "\"\(line.prefix(57))…\"" : "\"\(line)\""
}
