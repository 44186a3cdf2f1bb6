import Model

extension ValueKind where Value == TemplateText {
    /// A text with `{{placeholders}}`, each checked and noted with its place.
    static var templateText: ValueKind {
        let shape = ValueShape.text(words: "a text")
        return ValueKind(shape: shape) { field in
            guard let text = field.text(shape) else { return nil }
            do throws(TemplateText.ParseError) {
                let parsed = try TemplateText(parsing: text)
                noteVariables(of: parsed, written: text, in: field)
                return parsed
            } catch {
                refuse(error, written: text, in: field)
                return nil
            }
        }
    }

    private static func noteVariables(of parsed: TemplateText, written text: String, in field: Field) {
        guard !parsed.variables.isEmpty else { return }
        var rest = text[...]
        for part in parsed.parts {
            if case .literal = part { continue }
            guard let open = rest.firstRange(of: "{{"), let close = rest[open.upperBound...].firstRange(of: "}}") else {
                return
            }
            if case .variable(let name) = part {
                let offset = text.unicodeScalars.distance(from: text.startIndex, to: open.lowerBound)
                field.findings.variableUses.append(
                    VariableUse(name: name, place: field.place(ofScalar: offset)))
            }
            rest = rest[close.upperBound...]
        }
    }

    private static func refuse(_ error: TemplateText.ParseError, written text: String, in field: Field) {
        switch error {
        case .unclosed(let offset):
            report("a placeholder begins with {{ and does not end", "close it with }}", at: offset, text, field)
        case .malformed(let name, let offset):
            let what = name.isEmpty ? "an empty placeholder {{}}" : "{{\(name)}} is no placeholder"
            report(
                what, "write {{name}} with a letter, then letters, digits, _ and -; or {{device.model}}", at: offset,
                text, field)
        case .unknownDeviceField(let name, let offset):
            let names = AudienceField.named.map(\.name)
            let advice = Suggestion.nearest(to: name, among: names).map { "did you mean {{device.\($0)}}?" }
            report(
                "a device has no field \(quoted(name))",
                advice ?? "fields are \(names.dropLast(2).joined(separator: ", ")) and attributes.NAME", at: offset,
                text, field)
        }
    }

    /// `offset` counts characters, as ``TemplateText`` does; places count Unicode scalars.
    private static func report(_ what: String, _ advice: String, at offset: Int, _ text: String, _ field: Field) {
        let scalars = text.prefix(offset).unicodeScalars.count
        field.findings.error(what, advice, at: field.place(ofScalar: scalars))
    }
}
