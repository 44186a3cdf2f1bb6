import Model

/// The JSON Schema (draft 2020-12) of the files that people write. It is generated from the shapes that the readers
/// use, so that an editor completes and checks the files.
package enum JSONSchema {
    package enum File: String, CaseIterable, Sendable {
        case campaign, template, configuration

        package var shape: ObjectShape {
            switch self {
            case .campaign: CampaignKeys.shape
            case .template: TemplateKeys.shape
            case .configuration: ConfigurationKeys.shape
            }
        }
    }

    /// Returns the whole schema, indented, with a line end. `validate` makes further checks and may refuse a file that
    /// the schema accepts. A file that the schema refuses is always invalid. Both use the same rule for texts,
    /// ``TextForm``.
    package static func text(for file: File) -> String {
        let head: [(String, OrderedJSON)] = [
            ("$schema", .text("https://json-schema.org/draft/2020-12/schema")),
            ("title", .text("Fanfare \(file.rawValue) file")),
        ]
        return OrderedJSON.object(head + members(of: file.shape)).written() + "\n"
    }

    private static func members(of shape: ObjectShape) -> [(String, OrderedJSON)] {
        let required = shape.keys.filter(\.isRequired).map { OrderedJSON.text($0.name) }
        let choices = shape.oneOf.map { OrderedJSON.object([("required", .array([.text($0)]))]) }
        return [
            ("description", .text(shape.doc)), ("type", .text("object")),
            ("properties", .object(shape.keys.map { ($0.name, property($0)) })),
            ("additionalProperties", .plain("false")),
        ] + (required.isEmpty ? [] : [("required", .array(required))])
            + (choices.isEmpty ? [] : [("anyOf", .array(choices))])
    }

    /// Returns the schema of a key's value, with the key's own description.
    private static func property(_ key: KeyShape) -> OrderedJSON {
        let value = members(of: key.value).filter { $0.0 != "description" }
        return .object([("description", .text(key.doc))] + value)
    }

    private static func members(of shape: ValueShape) -> [(String, OrderedJSON)] {
        switch shape {
        case .text(_, let example, let form): return members(of: form) + examples(example)
        case .integer(let range):
            let most = range.upperBound == .max ? [] : [("maximum", OrderedJSON.plain("\(range.upperBound)"))]
            // Digits with `_` between them are texts in YAML 1.2.
            let types: [(String, OrderedJSON)] = [
                ("type", .array([.text("integer"), .text("string")])),
                ("pattern", .text(ScalarPattern.groupedInteger)),
            ]
            return types + [("minimum", .plain("\(range.lowerBound)"))] + most
        case .number(let range):
            return [
                ("type", .text("number")), ("minimum", .plain("\(range.lowerBound)")),
                ("maximum", .plain("\(range.upperBound)")),
            ]
        case .boolean: return [("type", .text("boolean"))]
        case .choice(let values):
            return [("enum", .array(values.map { Int($0) == nil ? .text($0) : .plain($0) }))]
        case .object(let shape): return members(of: shape)
        case .list(let element): return [("type", .text("array")), ("items", .object(members(of: element)))]
        case .map(let key, let value):
            return [("type", .text("object"))] + names(key)
                + [("additionalProperties", .object(members(of: value)))]
        case .either(let shapes): return [("anyOf", .array(shapes.map { .object(members(of: $0)) }))]
        case .anything: return []
        }
    }

    private static func members(of form: TextForm) -> [(String, OrderedJSON)] {
        switch form {
        case .free: [("type", .array([.text("string"), .text("number"), .text("boolean")]))]
        case .freeOrNothing:
            [("type", .array([.text("string"), .text("number"), .text("boolean"), .text("null")]))]
        case .pattern(let pattern): [("type", .text("string")), ("pattern", .text(pattern))]
        case .patternOrNumber(let pattern):
            [("type", .array([.text("string"), .text("number")])), ("pattern", .text(pattern))]
        case .patternOfPlain(let pattern):
            [
                ("type", .array([.text("string"), .text("number"), .text("boolean")])), ("pattern", .text(pattern)),
            ]
        case .patternOrZero(let pattern):
            [
                (
                    "anyOf",
                    .array([
                        .object([("type", .text("string")), ("pattern", .text(pattern))]),
                        .object([("const", .plain("0"))]),
                    ])
                )
            ]
        }
    }

    private static func names(_ key: ValueShape) -> [(String, OrderedJSON)] {
        switch key {
        case .text(_, _, .pattern(let pattern)), .text(_, _, .patternOrNumber(let pattern)),
            .text(_, _, .patternOfPlain(let pattern)):
            [("propertyNames", .object([("pattern", .text(pattern))]))]
        default: []
        }
    }

    private static func examples(_ example: String) -> [(String, OrderedJSON)] {
        guard !example.isEmpty else { return [] }
        // An example in quotes shows the YAML notation. The value is the text inside the quotes.
        let bare = example.hasPrefix("\"") && example.hasSuffix("\"") ? String(example.dropFirst().dropLast()) : example
        return [("examples", .array([.text(bare)]))]
    }
}

/// A JSON value whose keys keep their order, so that people can read it.
indirect enum OrderedJSON {
    case object([(key: String, value: OrderedJSON)])
    case array([OrderedJSON])
    case text(String)
    /// A number or a keyword of JSON, as written.
    case plain(String)

    /// Returns the JSON text, indented by two blanks per level, with arrays on one line.
    func written(indent: String = "") -> String {
        switch self {
        case .plain(let text): return text
        case .text(let text): return JSONEscaping.quoted(text)
        case .array(let values):
            return "[" + values.map { $0.written(indent: indent) }.joined(separator: ", ") + "]"
        case .object(let members):
            guard !members.isEmpty else { return "{}" }
            let inner = indent + "  "
            let lines = members.map { "\(inner)\(JSONEscaping.quoted($0.key)): \($0.value.written(indent: inner))" }
            return "{\n" + lines.joined(separator: ",\n") + "\n\(indent)}"
        }
    }
}
