import Model
import Yams

/// Reads YAML into a ``FileNode``; the only place that knows the YAML library.
///
/// Bounds: 64 levels of nesting and 100,000 values, aliases counted each time they are used.
struct YAMLDocument {
    private static let depthMax = 64
    private static let nodesMax = 100_000
    private static let duplicatesMax = 200

    private let findings: Findings
    private var nodes = 0
    /// First characters of keys that were exchanged, by what stands for them now; see ``compose(_:)``.
    private var exchanged: [Unicode.Scalar: Unicode.Scalar] = [:]

    /// Nil when the text is not YAML (reported to `findings`) or holds nothing at all (not reported).
    static func read(_ text: String, into findings: Findings) -> FileNode? {
        var document = YAMLDocument(findings: findings)
        guard let root = document.compose(text) else { return nil }
        return document.convert(root, depth: 0)
    }

    private init(findings: Findings) {
        self.findings = findings
    }

    /// The library stops at the first key that stands twice. To go on and report everything, the first of the two gets
    /// another first character (one of Unicode's private ones, so columns stay) and the text is read again.
    private mutating func compose(_ text: String) -> Yams.Node? {
        var text = text
        for attempt in 0...Self.duplicatesMax {
            do {
                return try Yams.compose(yaml: text)
            } catch YamlError.duplicatedKeysInMapping(let names, let context) {
                let place = Place(line: context.mark.line, column: context.mark.column)
                guard attempt < Self.duplicatesMax, exchangeKey(at: place, in: &text, attempt: attempt) else {
                    findings.error(
                        "key \(quoted(names.first ?? "")) stands twice", "remove one of the two", at: place)
                    return nil
                }
            } catch {
                report(error, text: text)
                return nil
            }
        }
        return nil
    }

    private mutating func exchangeKey(at place: Place, in text: inout String, attempt: Int) -> Bool {
        guard var index = findings.lines.index(of: place) else { return false }
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
        let place = node.mark.map { Place(line: $0.line, column: $0.column) } ?? Place()
        nodes += 1
        guard depth < Self.depthMax, nodes < Self.nodesMax else {
            let what = depth < Self.depthMax ? "more than \(Self.nodesMax) values" : "nested too deeply"
            findings.error(what, "make the file simpler", at: place)
            return nil
        }
        switch node {
        case .scalar(let scalar):
            let isPlain = scalar.style == .plain || scalar.style == .any
            return FileNode(content: .scalar(scalar.string), place: place, isPlain: isPlain)
        case .sequence(let sequence):
            let parts = sequence.compactMap { convert($0, depth: depth + 1) }
            return FileNode(content: .list(parts), place: place, isPlain: false)
        case .mapping(let mapping):
            return FileNode(content: .object(members(of: mapping, depth: depth)), place: place, isPlain: false)
        case .alias:
            return nil
        }
    }

    private mutating func members(of mapping: Yams.Node.Mapping, depth: Int) -> [FileNode.Member] {
        var members: [FileNode.Member] = []
        for (key, value) in mapping {
            let place = key.mark.map { Place(line: $0.line, column: $0.column) } ?? Place()
            guard let name = key.scalar?.string else {
                findings.error(
                    "a key must be a text", "put texts with {{placeholders}} or brackets in quotes", at: place)
                continue
            }
            guard let value = convert(value, depth: depth + 1) else { continue }
            members.append(FileNode.Member(key: original(name), place: place, value: value))
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
            let place = Place(line: context.mark.line, column: context.mark.column)
            findings.error("not valid YAML: a text begins here and does not end", "close its quotes", at: place)
        case YamlError.scanner(_, let problem, let mark, _), YamlError.parser(_, let problem, let mark, _),
            YamlError.composer(_, let problem, let mark, _):
            let place = Place(line: mark.line, column: mark.column)
            findings.error("not valid YAML: \(problem)", advice(for: problem, at: place), at: place)
        case YamlError.reader(let problem, let offset, _, _):
            let before = text.prefix(offset ?? 0)
            let line = before.count { $0.isNewline } + 1
            let column = before.reversed().prefix { !$0.isNewline }.count + 1
            findings.error(
                "not valid YAML: \(problem)", "remove the character", at: Place(line: line, column: column))
        default:
            findings.error("not valid YAML", "", at: Place())
        }
    }

    private func advice(for problem: String, at place: Place) -> String {
        let line = findings.lines.line(place.line)
        if line.contains("{{") { return "put texts with {{placeholders}} in quotes" }
        if line.contains("\t") { return "indent with blanks, not with tabs" }
        if problem.contains("mapping values") { return "put texts that hold a colon and a blank in quotes" }
        if problem.contains("cannot start any token") { return "put the text in quotes" }
        if problem.contains("another document") { return "remove the line --- and what follows it" }
        return "look at the indentation and the quotes here and above"
    }
}
