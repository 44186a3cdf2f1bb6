import Model

/// Reads one object of a file. It checks all keys first, and then returns typed values one by one.
struct ObjectReader {
    let location: SourceLocation
    let collector: DiagnosticCollector
    private let shape: ObjectShape
    private let fields: [String: Field]
    private let keyLocations: [String: SourceLocation]
    /// The known keys that the author probably meant by unknown keys.
    private let mistyped: Set<String>

    /// Reports unknown, repeated and missing keys. Returns `nil` if the value is not an object.
    init?(_ field: Field, _ shape: ObjectShape) {
        guard case .object(let members) = field.node.content else {
            field.refuse(.object(shape))
            return nil
        }
        location = field.location
        collector = field.collector
        self.shape = shape
        var fields: [String: Field] = [:]
        var keyLocations: [String: SourceLocation] = [:]
        var mistyped: Set<String> = []
        for member in members where field.isFirst(member, seen: &keyLocations) {
            guard shape.keys.contains(where: { $0.name == member.key }) else {
                if let meant = Self.refuseUnknown(member, in: shape, collector) { mistyped.insert(meant) }
                continue
            }
            fields[member.key] = Field(name: member.key, node: member.value, collector: collector)
        }
        self.fields = fields
        self.keyLocations = keyLocations
        self.mistyped = mistyped
        refuseMissing()
    }

    /// Returns the value of a key, or `nil` if the key is absent. If the value does not fit, reports that and returns
    /// `nil`.
    subscript<Value>(key: Key<Value>) -> Value? {
        fields[key.shape.name].flatMap(key.decoder.read)
    }

    /// Returns the value as written in the file.
    func field(_ name: String) -> Field? { fields[name] }

    /// Returns the location of the key itself.
    func keyLocation(_ name: String) -> SourceLocation? { keyLocations[name] }

    /// The location of each key of the object.
    var locations: [String: SourceLocation] { keyLocations }

    /// Tells whether none of the keys is present, not even misspelt.
    func lacks(_ names: [String]) -> Bool {
        names.allSatisfy { keyLocations[$0] == nil && !mistyped.contains($0) }
    }

    /// Returns the keys that should have a value and have no readable one. Such a key is required, has a value that
    /// does not fit, or is misspelt.
    func unread(_ keys: [(name: String, isRead: Bool)]) -> Set<String> {
        let required = Set(shape.keys.filter(\.isRequired).map(\.name))
        let missing = keys.filter { key in
            !key.isRead && (required.contains(key.name) || fields[key.name] != nil || mistyped.contains(key.name))
        }
        return Set(missing.map(\.name))
    }

    private func refuseMissing() {
        for key in shape.keys where key.isRequired && fields[key.name] == nil && !mistyped.contains(key.name) {
            let example = key.value.example.isEmpty ? "" : ", for example \(key.value.example)"
            collector.error(
                "\(shape.name): the key \(quoted(key.name)) is missing", "add it, with \(key.value.summary)\(example)",
                at: location)
        }
    }

    /// Reports an unknown key. Returns the key that was probably meant.
    private static func refuseUnknown(
        _ member: FileNode.Member, in shape: ObjectShape, _ collector: DiagnosticCollector
    ) -> String? {
        guard !collector.isFull else { return nil }
        let names = shape.keys.map(\.name)
        let nearest = Suggestion.nearest(to: member.key, among: names)
        let known = "the keys here are \(names.joined(separator: ", "))"
        let advice =
            nearest.map { "did you mean \(quoted($0))?" } ?? (shape.ownKeysAdvice.isEmpty ? known : shape.ownKeysAdvice)
        collector.error("\(shape.name): unknown key \(quoted(member.key))", advice, at: member.location)
        return nearest
    }
}

extension Field {
    /// Reports a repeated key of an object. Returns false for it.
    func isFirst(_ member: FileNode.Member, seen: inout [String: SourceLocation]) -> Bool {
        guard let first = seen[member.key] else {
            seen[member.key] = member.location
            return true
        }
        collector.error(
            "the key \(quoted(member.key)) appears twice", "remove this one or the one on line \(first.line)",
            at: member.location)
        return false
    }

    /// Returns the members of an object with keys of the author's choice. Reports any other value and returns `nil`.
    func members(_ shape: ValueShape) -> [FileNode.Member]? {
        guard case .object(let members) = node.content else {
            refuse(shape)
            return nil
        }
        var seen: [String: SourceLocation] = [:]
        return members.filter { isFirst($0, seen: &seen) }
    }
}

/// Collects the problems of one file during reading, so that all are reported together. Create one each time a file is
/// read, and use it on one thread only.
final class DiagnosticCollector {
    let path: String
    let lines: SourceLines
    /// Every use of a campaign variable in a template, with its location.
    var variableUses: [VariableUse] = []
    private var collected: [Diagnostic] = []
    private(set) var hasErrors = false
    /// The maximum number of problems. All further problems are summarised as one, because the caller probably named
    /// the wrong file.
    private static let diagnosticsMax = 200

    /// The file's folder with a slash at the end. Empty for the current folder.
    var folder: String { path.lastIndex(of: "/").map { String(path[...$0]) } ?? "" }

    init(path: String, text: String = "") {
        self.path = path
        lines = SourceLines(text)
    }

    func error(_ what: String, _ advice: String = "", at location: SourceLocation) {
        add(.error, what, advice, at: location)
    }

    func warning(
        _ what: String, _ advice: String = "", at location: SourceLocation, rule: LintRule? = nil,
        isAdvice: Bool = false
    ) {
        add(.warning, what, advice, at: location, rule: rule, isAdvice: isAdvice)
    }

    /// Whether no more problems are accepted. A caller can then skip the work of describing one.
    var isFull: Bool { collected.count > Self.diagnosticsMax }

    /// The problems in the order of the file.
    var diagnostics: [Diagnostic] { collected.inOrderOfFile }

    private func add(
        _ severity: Diagnostic.Severity, _ what: String, _ advice: String, at location: SourceLocation,
        rule: LintRule? = nil, isAdvice: Bool = false
    ) {
        if severity == .error { hasErrors = true }
        guard collected.count < Self.diagnosticsMax else { return addLast() }
        var found = Diagnostic(
            path: location.source ?? path, line: location.line, column: location.column, severity: severity, what: what,
            advice: advice, rule: rule)
        found.isAdvice = isAdvice
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

/// The location of something that a person wrote, for diagnostics.
package struct SourceLocation: Hashable, Sendable {
    /// The line from 1. 0 for the file as a whole.
    package var line: Int
    /// The column from 1, counted in Unicode scalars.
    package var column: Int
    /// The environment variable that the value came from, shown in place of the file's path. `nil` for a value in the
    /// file.
    package var source: String?

    package init(line: Int = 0, column: Int = 0, source: String? = nil) {
        self.line = line
        self.column = column
        self.source = source
    }
}

extension [Diagnostic] {
    /// The problems of one file, in the order of their places in it.
    var inOrderOfFile: [Diagnostic] {
        enumerated().sorted { left, right in
            (left.element.line, left.element.column, left.offset)
                < (right.element.line, right.element.column, right.offset)
        }.map(\.element)
    }
}
