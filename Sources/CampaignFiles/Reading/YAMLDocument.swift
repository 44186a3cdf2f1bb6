import Model

/// Reads YAML into a ``FileNode``.
///
/// The cost of a text is limited during reading: 64 levels of nesting, 100,000 values, and 2 MiB of text in them. Each
/// use of an alias counts as the whole value that it refers to. Reading stops at the first exceeded limit.
struct YAMLDocument {
    static let depthMax = 64
    private static let nodesMax = 100_000
    private static let textBytesMax = 2 << 20

    /// Thrown after the reason was reported.
    private struct Stop: Error {}

    /// A value that was read, with its cost per use.
    fileprivate struct Part {
        var node: FileNode
        var nodes = 1
        var bytes = 0
        /// The number of nested levels, including the value itself.
        var height = 1
    }

    private let collector: DiagnosticCollector
    private let events: YAMLEvents
    private var anchors: [String: Part] = [:]
    private var nodes = 0
    private var bytes = 0
    /// Problems of keys. They are reported only if the whole text is valid YAML, because a syntax error distorts what
    /// follows.
    private var keyProblems: [(what: String, advice: String, location: SourceLocation)] = []

    /// Reads a text. Returns `nil` for an empty text, and for a text that is not YAML. Only the second case is
    /// reported to `collector`.
    static func read(_ text: String, into collector: DiagnosticCollector) -> FileNode? {
        TextWork.reader?.wasRead()
        do {
            var document = YAMLDocument(collector: collector, events: try YAMLEvents(text))
            return try document.root()
        } catch let fault as YAMLFault {
            report(fault, to: collector)
            return nil
        } catch {
            return nil
        }
    }

    private init(collector: DiagnosticCollector, events: YAMLEvents) {
        self.collector = collector
        self.events = events
    }

    private mutating func root() throws -> FileNode? {
        _ = try events.next()
        guard case .documentStart = try events.next().kind else { return nil }
        let root = try part(try events.next(), depth: 0)
        _ = try events.next()
        let behind = try events.next()
        guard case .streamEnd = behind.kind else {
            throw YAMLFault(kind: .form, problem: "but found another document", location: behind.location)
        }
        for problem in keyProblems { collector.error(problem.what, problem.advice, at: problem.location) }
        return root.node
    }

    /// Reads the value that begins with an event.
    private mutating func part(_ event: YAMLEvent, depth: Int) throws -> Part {
        let part =
            switch event.kind {
            case .scalar(let text, let isPlain):
                Part(
                    node: FileNode(content: .scalar(text), location: event.location, isPlain: isPlain),
                    bytes: text.utf8.count)
            case .alias(let name): try anchored(name, at: event.location)
            case .listStart: try list(event.location, depth: depth)
            case .objectStart: try object(event.location, depth: depth)
            default: throw YAMLFault(kind: .form, problem: "a value is missing", location: event.location)
            }
        try count(part, isAlias: event.kind.isAlias, depth: depth, at: event.location)
        if let name = event.anchor { anchors[name] = part }
        return part
    }

    private func anchored(_ name: String, at location: SourceLocation) throws -> Part {
        guard let part = anchors[name] else {
            throw YAMLFault(kind: .form, problem: "found undefined alias", location: location)
        }
        return part
    }

    /// Counts a value. The parts of a list or an object were already counted when they were read. The parts of an
    /// alias are counted here.
    private mutating func count(_ part: Part, isAlias: Bool, depth: Int, at location: SourceLocation) throws {
        nodes += isAlias ? part.nodes : 1
        switch part.node.content {
        case .scalar: bytes += part.bytes
        case .list, .object: bytes += isAlias ? part.bytes : 0
        }
        try refuse(if: depth + part.height > Self.depthMax, "nested too deeply", at: location)
        try refuse(if: nodes >= Self.nodesMax, "more than \(Self.nodesMax) values", at: location)
        try refuse(if: bytes > Self.textBytesMax, "more than \(Self.textBytesMax) bytes of text", at: location)
    }

    private func refuse(if isTooMuch: Bool, _ what: String, at location: SourceLocation) throws {
        guard isTooMuch else { return }
        collector.error(what, "make the file simpler", at: location)
        throw Stop()
    }

    private mutating func list(_ location: SourceLocation, depth: Int) throws -> Part {
        try refuse(if: depth >= Self.depthMax, "nested too deeply", at: location)
        var values: [FileNode] = []
        var whole = Part(node: FileNode(content: .list([]), location: location, isPlain: false))
        while true {
            let event = try events.next()
            if case .listEnd = event.kind { break }
            let value = try part(event, depth: depth + 1)
            whole.add(value)
            values.append(value.node)
        }
        whole.node.content = .list(values)
        return whole
    }

    private mutating func object(_ location: SourceLocation, depth: Int) throws -> Part {
        try refuse(if: depth >= Self.depthMax, "nested too deeply", at: location)
        var members: [FileNode.Member] = []
        var whole = Part(node: FileNode(content: .object([]), location: location, isPlain: false))
        while true {
            let event = try events.next()
            if case .objectEnd = event.kind { break }
            let key = try part(event, depth: depth + 1)
            let value = try part(try events.next(), depth: depth + 1)
            whole.add(key)
            whole.add(value)
            guard let name = name(key.node, at: event.location) else { continue }
            members.append(FileNode.Member(key: name, location: event.location, value: value.node))
        }
        whole.node.content = .object(members)
        return whole
    }

    /// Returns the name of a key. If the key is invalid, records the problem and returns `nil`.
    private mutating func name(_ key: FileNode, at location: SourceLocation) -> String? {
        guard let name = key.text else {
            keyProblems.append(
                ("a key must be text", "put texts with {{placeholders}} or brackets in quotes", location))
            return nil
        }
        // In quotes, `<<` is an ordinary key.
        guard name != "<<" || !key.isPlain else {
            keyProblems.append(
                (
                    "merge keys (<<) are not supported",
                    "write the keys out here; an alias (*name) may stand for a whole value", location
                ))
            return nil
        }
        return name
    }
}

extension YAMLDocument.Part {
    fileprivate mutating func add(_ inner: Self) {
        nodes += inner.nodes
        bytes += inner.bytes
        height = max(height, inner.height + 1)
    }
}

extension YAMLEvent.Kind {
    fileprivate var isAlias: Bool {
        if case .alias = self { true } else { false }
    }
}

extension YAMLDocument {
    private static func report(_ fault: YAMLFault, to collector: DiagnosticCollector) {
        switch fault.kind {
        case .unclosed:
            collector.error(
                "not valid YAML: this quoted text is not closed", "close its quotes", at: fault.location)
        case .form:
            collector.error(
                "not valid YAML: \(fault.problem)", advice(for: fault, collector), at: fault.location)
        case .character:
            collector.error("not valid YAML: \(fault.problem)", "remove this character", at: fault.location)
        }
    }

    private static func advice(for fault: YAMLFault, _ collector: DiagnosticCollector) -> String {
        let line = collector.lines.line(fault.location.line)
        if line.contains("{{") { return "put texts with {{placeholders}} in quotes" }
        if line.contains("\t") { return "indent with spaces, not tabs" }
        if fault.problem.contains("mapping values") { return "put texts that contain a colon and a space in quotes" }
        if fault.problem.contains("cannot start any token") { return "put the text in quotes" }
        if fault.problem.contains("another document") { return "remove the line --- and what follows it" }
        return "check the indentation and the quotes here and above"
    }
}

/// A value of a YAML file with its location, independent of the YAML library.
struct FileNode: Sendable {
    enum Content: Sendable {
        case scalar(String)
        case list([FileNode])
        case object([Member])
    }

    /// One `key: value`, in the order written. A repeated key gives two members.
    struct Member: Sendable {
        var key: String
        var location: SourceLocation
        var value: FileNode
    }

    var content: Content
    var location: SourceLocation
    /// Whether the value was written without quotes, so that `2` may be a number and `true` a boolean.
    var isPlain: Bool

    /// The text of a scalar exactly as written, including `no` and `+1`.
    var text: String? {
        if case .scalar(let text) = content { text } else { nil }
    }

    /// Whether the value is missing after `key:`, or is `~` or `null`.
    var isNothing: Bool {
        guard isPlain, let text else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(text)
    }

    /// The kind of the value, for diagnostics: "expected a number, found …".
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

/// Returns a user's text for a message: in quotes, on one line, cut to 60 characters.
func quoted(_ text: String) -> String {
    let line = String(String.UnicodeScalarView(text.unicodeScalars.prefix(200))).onOneLine
    return line.count > 60 ? "\"\(line.prefix(57))…\"" : "\"\(line)\""
}
