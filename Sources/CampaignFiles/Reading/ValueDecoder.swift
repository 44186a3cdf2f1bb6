import Synchronization

/// Reads one type of value from a file, and knows its shape.
struct ValueDecoder<Value>: Sendable {
    let shape: ValueShape
    /// Nil when it does not fit; then the reason was reported.
    let read: @Sendable (Field) -> Value?
}

/// A key with the decoder of its value: the one declaration that readers, messages and the schema share.
struct Key<Value>: Sendable {
    let shape: KeyShape
    let decoder: ValueDecoder<Value>

    init(
        _ name: String, _ decoder: ValueDecoder<Value>, required: Bool = false, _ doc: String
    ) {
        shape = KeyShape(name: name, value: decoder.shape, isRequired: required, doc: doc)
        self.decoder = decoder
    }
}

/// A value under its key, with the collector of its problems.
struct Field {
    /// The key, or for an element of a list the list's key; empty for the file as a whole.
    var name: String
    var node: FileNode
    var collector: DiagnosticCollector

    var location: SourceLocation { node.location }

    func error(_ what: String, _ advice: String = "") {
        collector.error(what, advice, at: location)
    }

    func warning(_ what: String, _ advice: String) {
        collector.warning(what, advice, at: location)
    }

    /// Reports that the value is not what the shape asks for.
    func refuse(_ shape: ValueShape) {
        if node.isNothing {
            error("\(quoted(name)) has no value", "give it \(shape.words) or remove the key")
        } else {
            let example = shape.example.isEmpty ? "" : "write for example \(shape.example)"
            let subject = name.isEmpty ? "" : "\(quoted(name)): "
            error("\(subject)expected \(shape.words), found \(node.found)", example)
        }
    }

    /// The text of a scalar as written; nil after reporting for anything else.
    func text(_ shape: ValueShape) -> String? {
        guard let text = node.text, !node.isNothing else {
            refuse(shape)
            return nil
        }
        return text
    }

    /// The location of a character of this scalar, counted in Unicode scalars from 0.
    func location(ofScalar offset: Int) -> SourceLocation {
        guard location.source == nil, let text = node.text else { return location }
        return collector.lines.location(ofScalar: offset, of: text, from: location)
    }
}

extension ValueDecoder {
    /// An object with known keys, turned into a value by `build`.
    static func object(_ shape: ObjectShape, _ build: @escaping @Sendable (ObjectReader) -> Value?) -> ValueDecoder {
        ValueDecoder(shape: .object(shape)) { field in ObjectReader(field, shape).flatMap(build) }
    }

    /// A list; elements that do not fit are reported and left out.
    static func list<Element>(of element: ValueDecoder<Element>) -> ValueDecoder where Value == [Element] {
        let shape = ValueShape.list(element.shape)
        return ValueDecoder(shape: shape) { field in
            guard case .list(let nodes) = field.node.content else {
                field.refuse(shape)
                return nil
            }
            return nodes.compactMap { node in
                element.read(Field(name: field.name, node: node, collector: field.collector))
            }
        }
    }
}

/// What a key of a file may hold, as data: the readers check against it and a schema can be made from it.
package indirect enum ValueShape: Hashable, Sendable {
    /// A text of some form, in words and with an example: "a duration", "4h".
    case text(words: String, example: String = "", form: TextForm = .free)
    case integer(ClosedRange<Int>)
    case number(ClosedRange<Double>)
    case boolean
    case choice([String])
    case object(ObjectShape)
    case list(ValueShape)
    /// Keys of the author's own choosing, each with a value of the same shape.
    case map(key: ValueShape, ValueShape)
    case either([ValueShape])
    case anything

    /// For "expected …".
    package var words: String {
        switch self {
        case .text(let words, _, _): words
        case .integer(let range) where range.lowerBound == range.upperBound: "the number \(range.lowerBound)"
        case .integer(let range) where range.upperBound == .max: "a whole number from \(range.lowerBound)"
        case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .number(let range): "a number from \(trimmed(range.lowerBound)) to \(trimmed(range.upperBound))"
        case .boolean: "true or false"
        case .choice(let words): "one of \(words.joined(separator: ", "))"
        case .object(let shape): "an object with \(shape.keys.map(\.name).joined(separator: ", "))"
        case .list(let element): "a list, each \(element.words)"
        case .map(let key, let value): "an object, each key \(key.words), each value \(value.words)"
        case .either(let shapes): shapes.map(\.words).joined(separator: " or ")
        case .anything: "any value"
        }
    }

    package var example: String {
        if case .text(_, let example, _) = self { example } else { "" }
    }

    private func trimmed(_ number: Double) -> String {
        number == number.rounded() ? String(Int(number)) : String(number)
    }
}

/// What a text looks like: the one rule that the readers and the schema of an editor share.
package enum TextForm: Hashable, Sendable {
    /// Anything written on one line, so that `42` and `yes` are texts too.
    case free
    /// The same, with nothing at all besides.
    case freeOrNothing
    /// A regular expression (ECMA 262 with its flag u) that the whole of every such text matches; plain numbers are
    /// refused.
    case pattern(String)
    /// The same, with plain numbers besides.
    case patternOrNumber(String)
    /// The same, for a text that a file may show as a number, or as true and false.
    case patternOfPlain(String)
    /// The same, with a plain 0 besides.
    case patternOrZero(String)
}

extension TextForm {
    /// Whether a scalar has the form; what it means is for its reader to say.
    func accepts(_ node: FileNode) -> Bool {
        guard let text = node.text else { return false }
        switch self {
        case .free, .freeOrNothing: return true
        case .pattern(let pattern), .patternOrZero(let pattern), .patternOfPlain(let pattern):
            return Self.matches(text, pattern)
        case .patternOrNumber(let pattern):
            return Self.matches(text, pattern) || (node.isPlain && Self.matches(text, ScalarPattern.number))
        }
    }

    /// Character by character as an editor has it, which knows no letters made of several.
    static func matches(_ text: String, _ pattern: String) -> Bool {
        expressions.withLock { known in
            if known[pattern] == nil { known[pattern] = try? Regex(pattern).matchingSemantics(.unicodeScalar) }
            return (try? known[pattern]?.wholeMatch(in: text)) != nil
        }
    }

    /// By their patterns, which are this program's own and few: a file of many keys would spend its time on making them.
    private static let expressions = Mutex<[String: Regex<AnyRegexOutput>]>([:])
}

/// Regular expressions that stand in more than one place.
enum ScalarPattern {
    /// As YAML 1.2 writes numbers; what else a programming language may call one is a text to an editor.
    static let number = #"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"#
    static let integer = "^[-+]?[0-9]+(_[0-9]+)*$"
    /// Of an integer that only `_` between its digits makes a text.
    static let groupedInteger = "^[-+]?[0-9]+(_[0-9]+)+$"
    /// A campaign, a template or a variant. Its length is counted as an editor counts it.
    static let name = #"^[\p{Alphabetic}\p{N}_-][\p{Alphabetic}\p{N}._-]{0,99}$"#
    /// A variable of a template.
    static let variable = #"^[\p{Alphabetic}_][\p{Alphabetic}\p{M}\p{N}_-]*$"#
}

/// The keys of one object of a file.
package struct ObjectShape: Hashable, Sendable {
    /// As diagnostics name it: `campaign`, `pace`.
    package var name: String
    package var doc: String
    package var keys: [KeyShape]
    /// Where keys of the author's own choosing belong, who may have put them here; empty: nowhere.
    package var ownKeysAdvice: String
    /// One of these keys has to be there; empty: none. The reader says so in words of its own.
    package var oneOf: [String]

    package init(
        _ name: String, _ doc: String, ownKeysAdvice: String = "", oneOf: [String] = [], _ keys: [KeyShape]
    ) {
        self.name = name
        self.doc = doc
        self.ownKeysAdvice = ownKeysAdvice
        self.oneOf = oneOf
        self.keys = keys
    }
}

/// One key: its name, what it may hold and what it means.
package struct KeyShape: Hashable, Sendable {
    package var name: String
    package var value: ValueShape
    package var isRequired: Bool
    package var doc: String
}
