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

    /// An error in a placeholder, with the Unicode scalar of the text (from 0) at which the placeholder starts.
    package enum ParseError: Error, Hashable {
        case unclosed(offset: Int)
        case malformed(String, offset: Int)
        case unknownDeviceField(String, offset: Int)
    }

    /// Reads `{{ name }}`. Blanks inside the braces are tolerated. A single brace is an ordinary character.
    package init(parsing text: String) throws(ParseError) {
        self = try Self.located(text).text
    }

    /// Reads a text as ``init(parsing:)`` does, in one pass.
    ///
    /// - Returns: the text, and for each variable its name and the Unicode scalar at which its placeholder starts.
    package static func located(_ text: String) throws(ParseError) -> (
        text: TemplateText, variables: [(name: String, offset: Int)]
    ) {
        let scalars = Array(text.unicodeScalars)
        var parts: [Part] = []
        var variables: [(name: String, offset: Int)] = []
        var index = 0
        while let open = pair("{", in: scalars, from: index) {
            if open > index { parts.append(.literal(string(scalars[index..<open]))) }
            guard let close = pair("}", in: scalars, from: open + 2) else { throw .unclosed(offset: open) }
            let part = try placeholder(scalars[(open + 2)..<close], at: open)
            if case .variable(let name) = part { variables.append((name, open)) }
            parts.append(part)
            index = close + 2
        }
        if index < scalars.count { parts.append(.literal(string(scalars[index...]))) }
        return (TemplateText(parts: parts), variables)
    }

    private static func pair(_ brace: Unicode.Scalar, in scalars: [Unicode.Scalar], from start: Int) -> Int? {
        var index = start
        while index + 1 < scalars.count {
            if scalars[index] == brace, scalars[index + 1] == brace { return index }
            index += 1
        }
        return nil
    }

    private static func string(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
        String(String.UnicodeScalarView(scalars))
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

    private static func placeholder(_ inside: ArraySlice<Unicode.Scalar>, at offset: Int) throws(ParseError) -> Part {
        var inside = inside.drop { $0 == " " }
        while inside.last == " " { inside.removeLast() }
        let name = string(inside)
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

    /// Tells whether a text is a letter or `_`, then letters, combining marks, digits, `_` and `-`.
    package static func isName(_ text: Substring) -> Bool {
        let scalars = text.unicodeScalars
        guard let first = scalars.first, first == "_" || first.properties.isAlphabetic else { return false }
        return scalars.allSatisfy { $0 == "_" || $0 == "-" || $0.properties.isAlphabetic || isMarkOrNumber($0) }
    }

    private static func isMarkOrNumber(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .decimalNumber, .letterNumber, .otherNumber, .nonspacingMark, .spacingMark, .enclosingMark: true
        default: false
        }
    }
}

/// Any JSON value that a template author may write under `custom`. Texts may contain placeholders, and keys keep their
/// order.
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
