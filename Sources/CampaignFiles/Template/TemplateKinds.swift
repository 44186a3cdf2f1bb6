import Model

extension ValueKind where Value == Template.Badge {
    /// `3` sets, `+1` adds: YAML reads both as numbers, so the text as written decides.
    static var badge: ValueKind {
        parsed(
            "a number from 0, or +n to add", example: "+1", form: .patternOrNumber(#"^\+?[0-9]+$"#)
        ) { text in
            let digits = text.hasPrefix("+") ? text.dropFirst() : text[...]
            guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int32(digits)
            else { return nil }
            return text.hasPrefix("+") ? .increment(Int(number)) : .number(Int(number))
        }
    }
}

extension ValueKind where Value == Template.Sound {
    static var sound: ValueKind {
        let text = ValueKind<TemplateText>.templateText
        let shape = ValueShape.either([text.shape, .object(TemplateKeys.CriticalSound.shape)])
        return ValueKind(shape: shape) { field in
            guard case .object = field.node.content else { return text.read(field).map { .named($0) } }
            guard let reader = ObjectReader(field, TemplateKeys.CriticalSound.shape) else { return nil }
            _ = reader[TemplateKeys.CriticalSound.critical]
            let name = reader[TemplateKeys.CriticalSound.name] ?? TemplateText(literal: "default")
            return .critical(name: name, volume: reader[TemplateKeys.CriticalSound.volume])
        }
    }
}

extension ValueKind where Value == LiveActivity.Moment {
    static var moment: ValueKind {
        let form = TextForm.patternOrNumber(#"^(\+([0-9]+(ms|s|m|h|d|w))+|[0-9]{4}-[0-9]{2}-[0-9]{2}.*)$"#)
        return parsed("a time, UNIX seconds, or a duration after sending", example: "+4h", form: form) { text in
            if text.hasPrefix("+") { return WrittenDuration.parse(text.dropFirst()).map { .afterSending($0) } }
            if let time = ISOTime.parse(text) { return .at(time) }
            return Int32(text).map { .at(Timestamp(milliseconds: Int64($0) * 1000)) }
        }
    }
}

extension ValueKind where Value == [TemplateValue.Member] {
    /// An object of any shape.
    static var members: ValueKind {
        let shape = ValueShape.map(key: .text(words: "a name"), .anything)
        return ValueKind(shape: shape) { field in
            field.members(shape).map { CustomReading.members($0, of: field) }
        }
    }

    static var custom: ValueKind {
        let shape = ValueShape.map(key: .text(words: "a name"), .anything)
        return ValueKind(shape: shape) { field in
            guard let members = field.members(shape) else { return nil }
            if let aps = members.first(where: { $0.key == "aps" }) {
                field.findings.error(
                    "custom holds the key \"aps\", which belongs to Apple",
                    "use the keys of the template for what stands in aps, and another name for your own", at: aps.place)
            }
            for member in members where APSKey.onlyInside.contains(member.key) {
                field.findings.warning(
                    "custom holds \(quoted(member.key)), which Apple looks for in aps only",
                    "use \(quoted(APSKey.inTemplate(member.key))) of the template if Apple's is meant", at: member.place
                )
            }
            return CustomReading.members(members, of: field)
        }
    }
}

/// JSON values out of YAML ones: only `true`, `false`, `null` and decimal numbers are not texts.
private enum CustomReading {
    static func members(_ members: [FileNode.Member], of field: Field) -> [TemplateValue.Member] {
        members.compactMap { member in
            if member.key.contains("{{") {
                field.findings.error(
                    "the key \(quoted(member.key)) holds a placeholder", "use placeholders in values only",
                    at: member.place)
            }
            return value(Field(name: member.key, node: member.value, findings: field.findings))
                .map { TemplateValue.Member(member.key, $0) }
        }
    }

    private static func value(_ field: Field) -> TemplateValue? {
        switch field.node.content {
        case .list(let nodes):
            .array(nodes.compactMap { value(Field(name: field.name, node: $0, findings: field.findings)) })
        case .object: field.members(.anything).map { .object(members($0, of: field)) }
        case .scalar(let text): field.node.isPlain ? plain(text, field) : text.isEmpty ? empty : templateText(field)
        }
    }

    private static let empty = TemplateValue.text(TemplateText(literal: ""))

    private static func templateText(_ field: Field) -> TemplateValue? {
        ValueKind<TemplateText>.templateText.read(field).map { .text($0) }
    }

    private static func plain(_ text: String, _ field: Field) -> TemplateValue? {
        switch text {
        case "", "~", "null": return .null
        case "true": return .boolean(true)
        case "false": return .boolean(false)
        default: break
        }
        // JSON has no leading zeros and no plus sign; such a text (a code, a phone number) stays a text.
        let digits = text.drop { $0 == "-" }
        let looksNumeric = text.utf8.allSatisfy { (0x30...0x39).contains($0) || "-+.eE".utf8.contains($0) }
        let hasZero = digits.hasPrefix("0") && digits.utf8.count > 1 && !digits.hasPrefix("0.")
        guard looksNumeric, !text.hasPrefix("+"), !hasZero else { return templateText(field) }
        if let integer = Int64(text) { return .integer(integer) }
        if let number = Double(text), number.isFinite { return .number(number) }
        return templateText(field)
    }
}
