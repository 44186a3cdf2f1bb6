/// A text with placeholders: `{{title}}` for a campaign variable, `{{device.model}}` for a field of the device.
package struct TemplateText: Hashable, Sendable, Codable {
    package enum Part: Hashable, Sendable, Codable {
        case literal(String)
        case variable(String)
        case device(AudienceField)

        private enum CodingKeys: String, CodingKey {
            case literal = "literal", variable = "variable", device = "device"
        }
    }

    package var parts: [Part]

    private enum CodingKeys: String, CodingKey {
        case parts = "parts"
    }

    package init(parts: [Part]) {
        self.parts = parts
    }

    package init(literal: String) {
        parts = literal.isEmpty ? [] : [.literal(literal)]
    }

    /// What is wrong with a placeholder, and at which character of the text (from 0) it starts.
    package enum ParseError: Error, Hashable {
        case unclosed(offset: Int)
        case malformed(String, offset: Int)
        case unknownDeviceField(String, offset: Int)
    }

    /// Reads `{{ name }}`; blanks inside the braces are tolerated. A single brace is an ordinary character.
    package init(parsing text: String) throws(ParseError) {
        var parts: [Part] = []
        var literal = ""
        var rest = text[...]
        while let open = rest.firstRange(of: "{{") {
            literal += rest[..<open.lowerBound]
            let offset = text.distance(from: text.startIndex, to: open.lowerBound)
            guard let close = rest[open.upperBound...].firstRange(of: "}}") else { throw .unclosed(offset: offset) }
            if !literal.isEmpty { parts.append(.literal(literal)) }
            literal = ""
            parts.append(try Self.placeholder(rest[open.upperBound..<close.lowerBound], at: offset))
            rest = rest[close.upperBound...]
        }
        literal += rest
        if !literal.isEmpty { parts.append(.literal(literal)) }
        self.parts = parts
    }

    package var variables: Set<String> {
        parts.reduce(into: []) { names, part in
            if case .variable(let name) = part { names.insert(name) }
        }
    }

    package var deviceFields: Set<AudienceField> {
        parts.reduce(into: []) { fields, part in
            if case .device(let field) = part { fields.insert(field) }
        }
    }

    private static func placeholder(_ inside: Substring, at offset: Int) throws(ParseError) -> Part {
        let name = String(inside.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
        if name.hasPrefix("device.") {
            let field = name.dropFirst("device.".count)
            if field.hasPrefix("attributes."), isName(field.dropFirst("attributes.".count)) {
                return .device(.attribute(String(field.dropFirst("attributes.".count))))
            }
            guard let known = AudienceField(named: field) else {
                throw .unknownDeviceField(String(field), offset: offset)
            }
            return .device(known)
        }
        guard isName(name[...]) else { throw .malformed(name, offset: offset) }
        return .variable(name)
    }

    /// A letter or `_`, then letters, digits, `_` and `-`.
    package static func isName(_ text: Substring) -> Bool {
        guard let first = text.first, first == "_" || first.isLetter else { return false }
        return text.allSatisfy { $0 == "_" || $0 == "-" || $0.isLetter || $0.isNumber }
    }
}

/// Any JSON value a template author may write under `custom`; texts may hold placeholders, keys keep their order.
package indirect enum TemplateValue: Hashable, Sendable, Codable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case number(Double)
    case text(TemplateText)
    case array([TemplateValue])
    case object([Member])

    private enum CodingKeys: String, CodingKey {
        case null = "null", boolean = "boolean", integer = "integer", number = "number", text = "text"
        case array = "array", object = "object"
    }

    package struct Member: Hashable, Sendable, Codable {
        package var key: String
        package var value: TemplateValue

        private enum CodingKeys: String, CodingKey {
            case key = "key", value = "value"
        }

        package init(_ key: String, _ value: TemplateValue) {
            self.key = key
            self.value = value
        }
    }

    /// Every text anywhere inside.
    package var texts: [TemplateText] {
        switch self {
        case .text(let text): [text]
        case .array(let values): values.flatMap(\.texts)
        case .object(let members): members.flatMap(\.value.texts)
        case .null, .boolean, .integer, .number: []
        }
    }
}
