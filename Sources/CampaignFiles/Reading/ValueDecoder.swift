import Synchronization

/// A decoder of one type of value in a file, with the value's shape.
struct ValueDecoder<Value>: Sendable {
    let shape: ValueShape
    /// Returns the value. If the value does not fit, reports the reason and returns `nil`.
    let read: @Sendable (Field) -> Value?
}

/// A key with the decoder of its value. Readers, messages and the schema share this declaration.
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

/// A value with its key and the collector of its problems.
struct Field {
    /// The key, or the list's key for an element of a list. Empty for the file as a whole.
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

    /// Adds a warning for a person who checks the installation.
    func advise(_ what: String, _ advice: String) {
        collector.warning(what, advice, at: location, isAdvice: true)
    }

    /// Reports that the value does not have the required shape.
    func refuse(_ shape: ValueShape) {
        if node.isNothing {
            error("\(quoted(name)) has no value", "give it \(shape.summary) or remove the key")
        } else {
            let example = shape.example.isEmpty ? "" : "write for example \(shape.example)"
            let subject = name.isEmpty ? "" : "\(quoted(name)): "
            error("\(subject)expected \(shape.summary), found \(node.found)", example)
        }
    }

    /// Returns the text of a scalar as written. Reports any other value and returns `nil`.
    func text(_ shape: ValueShape) -> String? {
        guard let text = node.text, !node.isNothing else {
            refuse(shape)
            return nil
        }
        return text
    }

    /// Returns the location of a character of this scalar. Characters are counted in Unicode scalars from 0.
    func location(ofScalar offset: Int) -> SourceLocation {
        guard location.source == nil, let text = node.text else { return location }
        return collector.lines.location(ofScalar: offset, of: text, from: location)
    }
}

extension ValueDecoder {
    /// Decodes an object with known keys. `build` converts it into a value.
    static func object(_ shape: ObjectShape, _ build: @escaping @Sendable (ObjectReader) -> Value?) -> ValueDecoder {
        ValueDecoder(shape: .object(shape)) { field in ObjectReader(field, shape).flatMap(build) }
    }

    /// Decodes a list. Elements that do not fit are reported and left out.
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

/// The allowed values of a key, as data. The readers check values against the shape, and the schema is generated from
/// it.
package indirect enum ValueShape: Hashable, Sendable {
    /// A text of some form, with a description and an example: "a duration", "4h".
    case text(summary: String, example: String = "", form: TextForm = .free)
    case integer(ClosedRange<Int>)
    case number(ClosedRange<Double>)
    case boolean
    case choice([String])
    case object(ObjectShape)
    case list(ValueShape)
    /// Keys of the author's choice, each with a value of the same shape.
    case map(key: ValueShape, ValueShape)
    case either([ValueShape])
    case anything

    /// The description for "expected …".
    package var summary: String {
        switch self {
        case .text(let summary, _, _): summary
        case .integer(let range) where range.lowerBound == range.upperBound: "the number \(range.lowerBound)"
        case .integer(let range) where range.upperBound == .max: "a whole number from \(range.lowerBound)"
        case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .number(let range): "a number from \(trimmed(range.lowerBound)) to \(trimmed(range.upperBound))"
        case .boolean: "true or false"
        case .choice(let values): "one of \(values.joined(separator: ", "))"
        case .object(let shape): "an object with \(shape.keys.map(\.name).joined(separator: ", "))"
        case .list(let element): "a list, each \(element.summary)"
        case .map(let key, let value): "an object, each key \(key.summary), each value \(value.summary)"
        case .either(let shapes): shapes.map(\.summary).joined(separator: " or ")
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

/// The form of a text. The readers and the schema for editors share this rule.
package enum TextForm: Hashable, Sendable {
    /// Any text on one line. `42` and `yes` are therefore texts too.
    case free
    /// Any text on one line, or no value.
    case freeOrNothing
    /// A regular expression (ECMA 262 with its flag u) that each such text matches as a whole. Plain numbers are
    /// refused.
    case pattern(String)
    /// A pattern as in ``pattern(_:)``, or a plain number.
    case patternOrNumber(String)
    /// A pattern as in ``pattern(_:)``, for a text that may look like a number or a boolean in a file.
    case patternOfPlain(String)
    /// A pattern as in ``pattern(_:)``, or a plain 0.
    case patternOrZero(String)
}

extension TextForm {
    /// Tells whether a scalar has the form. The decoder checks its meaning separately.
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

    /// The maximum size of a text with a pattern, for example of an address. A longer text does not match, because a
    /// regular expression may take a time that is quadratic in the size.
    static let bytesMax = 2048

    /// Matches by Unicode scalars, as an editor does, and not by composed characters.
    static func matches(_ text: String, _ pattern: String) -> Bool {
        guard text.utf8.count <= bytesMax else { return false }
        // Match outside the lock, which all readers of files share.
        let expression = expressions.withLock { known in
            if known[pattern] == nil { known[pattern] = try? Regex(pattern).matchingSemantics(.unicodeScalar) }
            return known[pattern]
        }
        return (try? expression?.wholeMatch(in: text)) != nil
    }

    /// The compiled expressions, by pattern. The patterns are few and fixed, and compiling them for each key takes too
    /// long.
    private static let expressions = Mutex<[String: Regex<AnyRegexOutput>]>([:])
}

/// Regular expressions that are used in several places.
enum ScalarPattern {
    /// A number as in YAML 1.2. Other notations of numbers are texts to an editor.
    static let number = #"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"#
    static let integer = "^[-+]?[0-9]+(_[0-9]+)*$"
    /// An integer that YAML 1.2 reads as a text, because it has `_` between its digits.
    static let groupedInteger = "^[-+]?[0-9]+(_[0-9]+)+$"
    /// The name of a campaign, a template or a variant. Its length is counted in Unicode scalars, as in an editor.
    static let name = #"^[\p{Alphabetic}\p{N}_-][\p{Alphabetic}\p{N}._-]{0,99}$"#
    /// The name of a variable of a template.
    static let variable = #"^[\p{Alphabetic}_][\p{Alphabetic}\p{M}\p{N}_-]*$"#
}

/// The keys of one object of a file.
package struct ObjectShape: Hashable, Sendable {
    /// The name in diagnostics: `campaign`, `pace`.
    package var name: String
    package var doc: String
    package var keys: [KeyShape]
    /// Advice on where an author's own keys belong, for an unknown key of this object. Empty if there is no such
    /// advice.
    package var ownKeysAdvice: String
    /// Keys of which one must be present. Empty for no such rule. The reader reports a violation with its own message.
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

/// One key: its name, its allowed values and its meaning.
package struct KeyShape: Hashable, Sendable {
    package var name: String
    package var value: ValueShape
    package var isRequired: Bool
    package var doc: String
}
