import Foundation
import Model

/// The composer's fields of an audience: all devices, a choice, or an expression.
///
/// A choice is a conjunction of simple conditions: in any of some segments and in none of others, the same for tags,
/// some languages, some countries, the least app version, the days since the device was last seen, and one value each
/// of some attributes.
enum AudienceFields {
    static func read(_ root: FileNode) -> [String: String] {
        root["audience_sql"] == nil ? read(root.text("audience")) : ["who": "sql"]
    }

    static func read(_ source: String) -> [String: String] {
        guard let expression = AudienceParser.parse(source).0 else {
            return ["who": "expression", "who.expression": source]
        }
        if expression == .everyone { return ["who": "everyone", "who.expression": source] }
        guard var values = choice(expression) else { return ["who": "expression", "who.expression": source] }
        values["who"] = "choose"
        values["who.expression"] = source
        return values
    }

    /// Returns the audience to write. `nil` for one that only the file can have.
    static func value(_ fields: ComposerFields) -> YAMLValue? {
        switch fields["who"] {
        case "everyone": .word("everyone")
        case "choose": .folded(lines(fields))
        case "expression": .folded([fields["who.expression"].onOneLine])
        default: nil
        }
    }

    /// Returns the expression of the form's choice, as one text.
    static func text(_ fields: ComposerFields) -> String {
        switch fields["who"] {
        case "everyone": "everyone"
        case "choose": lines(fields).joined(separator: " ")
        default: fields["who.expression"].onOneLine
        }
    }

    private static func lines(_ fields: ComposerFields) -> [String] {
        var parts = membership("segment", fields)
        let locales = fields.names(behind: "who.locale.").filter { fields["who.locale.\($0)"] == "on" }
        if !locales.isEmpty { parts.append("locale in (\(list(locales)))") }
        let countries = countries(fields["who.countries"])
        if !countries.isEmpty { parts.append("country in (\(list(countries)))") }
        if !fields["who.version"].isEmpty { parts.append("app_version >= \(literal(fields["who.version"]))") }
        if !fields["who.seen"].isEmpty {
            // In quotes, anything but a number is an error of the expression, and no further condition.
            let days = Int(fields["who.seen"]).map { "\($0)" } ?? literal(fields["who.seen"])
            parts.append("last_seen within \(days) days")
        }
        parts += membership("tag", fields)
        for key in fields.names(behind: "who.attribute.") where !fields["who.attribute.\(key)"].isEmpty {
            parts.append("attribute(\(literal(key))) = \(literal(fields["who.attribute.\(key)"]))")
        }
        // A choice without a condition is no audience: only a person's own word selects every device.
        guard let first = parts.first else { return [""] }
        return [first] + parts.dropFirst().map { "and \($0)" }
    }

    /// Returns the codes of countries that commas separate, as codes or English names. Codes may also stand behind each
    /// other.
    static func countries(_ text: String) -> [String] {
        text.split(separator: ",").flatMap { part in
            let name = part.trimmingCharacters(in: .whitespaces)
            if let code = EnglishNames.countryCode(named: name) { return [code] }
            return name.split(whereSeparator: \.isWhitespace).map(String.init)
        }
    }

    private static func membership(_ kind: String, _ fields: ComposerFields) -> [String] {
        func named(_ state: String) -> [String] {
            fields.names(behind: "who.\(kind).").filter { fields["who.\(kind).\($0)"] == state }
                .map { "\(kind)(\(literal($0)))" }
        }
        let inside = named("in")
        let any = inside.count > 1 ? ["(\(inside.joined(separator: " or ")))"] : inside
        return any + named("out").map { "not \($0)" }
    }

    private static func list(_ values: [String]) -> String { values.map(literal).joined(separator: ", ") }

    private static func literal(_ text: String) -> String { expressionLiteral(text.onOneLine) }

    // MARK: Reading

    /// Returns the fields of an expression that the form can show; otherwise `nil`.
    private static func choice(_ expression: AudienceExpression) -> [String: String]? {
        var values: [String: String] = [:]
        var kinds: Set<String> = []
        for part in parts(of: expression) {
            guard let (kind, found) = condition(part) else { return nil }
            // A second condition of a kind means both, and the fields mean any.
            guard kind.isEmpty || kinds.insert(kind).inserted else { return nil }
            for (name, value) in found {
                guard values.updateValue(value, forKey: name) == nil else { return nil }
            }
        }
        return values
    }

    private static func parts(of expression: AudienceExpression) -> [AudienceExpression] {
        if case .all(let parts) = expression { parts } else { [expression] }
    }

    private static func condition(_ part: AudienceExpression) -> (kind: String, values: [String: String])? {
        switch part {
        case .segment, .tag: return any([part])
        case .any(let parts): return any(parts)
        case .not(.segment(let name)): return ("", ["who.segment.\(name)": "out"])
        case .not(.tag(let name)): return ("", ["who.tag.\(name)": "out"])
        // `locale = "de"` is that language alone, and so is no choice: `in` selects de-AT, too.
        case .oneOf(.locale, let values):
            let tags = values.compactMap(text)
            guard tags.count == values.count else { return nil }
            return ("locale", Dictionary(tags.map { ("who.locale.\($0)", "on") }) { $1 })
        case .oneOf(.country, let values):
            let names = values.compactMap(text)
            guard names.count == values.count, names.allSatisfy(isWord) else { return nil }
            return ("country", ["who.countries": names.joined(separator: ", ")])
        case .comparison(.country, .equal, .text(let name)) where isWord(name):
            return ("country", ["who.countries": name])
        case .comparison(.appVersion, .greaterOrEqual, .version(let version)):
            return ("version", ["who.version": version.description])
        case .within(.lastSeenAt, let duration):
            let seconds = duration.components.seconds
            guard seconds % 86_400 == 0, duration.components.attoseconds == 0 else { return nil }
            return ("seen", ["who.seen": "\(seconds / 86_400)"])
        case .comparison(.attribute(let key), .equal, .text(let value)) where !value.isEmpty:
            return ("", ["who.attribute.\(key)": value])
        default: return nil
        }
    }

    private static func any(_ parts: [AudienceExpression]) -> (kind: String, values: [String: String])? {
        var (segments, tags) = ([String: String](), [String: String]())
        for part in parts {
            switch part {
            case .segment(let name): segments["who.segment.\(name)"] = "in"
            case .tag(let name): tags["who.tag.\(name)"] = "in"
            default: return nil
            }
        }
        guard segments.isEmpty != tags.isEmpty else { return nil }
        return segments.isEmpty ? ("tags", tags) : ("segments", segments)
    }

    private static func text(_ value: AudienceValue) -> String? {
        switch value {
        case .text(let text): text
        case .locale(let tag): tag.description
        case .version(let version): version.description
        case .number, .boolean, .time: nil
        }
    }

    /// Whether a value can stand in a list that commas and spaces separate.
    private static func isWord(_ text: String) -> Bool {
        !text.isEmpty && !text.contains { $0 == "," || $0.isWhitespace }
    }
}

extension ComposerFields {
    /// The audience of the form's choice as an expression, for a count while a person chooses.
    package var audience: String { AudienceFields.text(self) }

    /// Reads an expression into the fields of an audience.
    package init(audience source: String) { self.init(AudienceFields.read(source)) }
}
