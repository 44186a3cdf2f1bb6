import Model

extension ValueDecoder where Value == TemplateText {
    /// A text with `{{placeholders}}`. Each placeholder is checked and recorded with its location.
    static var templateText: ValueDecoder {
        let shape = ValueShape.text(summary: "a text")
        return ValueDecoder(shape: shape) { field in
            guard let text = field.text(shape) else { return nil }
            do throws(TemplateText.ParseError) {
                let parsed = try TemplateText.located(text)
                field.collector.variableUses += parsed.variables.map { name, offset in
                    VariableUse(name: name, location: field.location(ofScalar: offset))
                }
                return parsed.text
            } catch {
                refuse(error, in: field)
                return nil
            }
        }
    }

    private static func refuse(_ error: TemplateText.ParseError, in field: Field) {
        switch error {
        case .unclosed(let offset):
            report("a placeholder begins with {{ but is not closed", "close it with }}", at: offset, field)
        case .malformed(let name, let offset):
            let what = name.isEmpty ? "an empty placeholder {{}}" : "{{\(name)}} is not a valid placeholder"
            report(
                what, "write {{name}} with a letter, then letters, digits, _ and -; or {{device.model}}", at: offset,
                field)
        case .unknownDeviceField(let name, let offset):
            let names = AudienceField.named.map(\.name)
            let advice = Suggestion.nearest(to: name, among: names).map { "did you mean {{device.\($0)}}?" }
            report(
                "a device has no field \(quoted(name))",
                advice ?? "fields are \(names.dropLast(2).joined(separator: ", ")) and attributes.NAME", at: offset,
                field)
        }
    }

    private static func report(_ what: String, _ advice: String, at offset: Int, _ field: Field) {
        field.collector.error(what, advice, at: field.location(ofScalar: offset))
    }
}

extension ValueDecoder where Value == Template.Badge {
    /// `3` sets the badge and `+1` adds to it. YAML reads both as numbers, so the decoder checks the text as written.
    static var badge: ValueDecoder {
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

extension ValueDecoder where Value == [LintRule] {
    static var lint: ValueDecoder {
        .object(TemplateKeys.Lint.shape) { $0[TemplateKeys.Lint.allow] }
    }
}

extension ValueDecoder where Value == Template.Sound {
    static var sound: ValueDecoder {
        let text = ValueDecoder<TemplateText>.templateText
        let shape = ValueShape.either([text.shape, .object(TemplateKeys.CriticalSound.shape)])
        return ValueDecoder(shape: shape) { field in
            guard case .object = field.node.content else { return text.read(field).map { .named($0) } }
            guard let reader = ObjectReader(field, TemplateKeys.CriticalSound.shape) else { return nil }
            _ = reader[TemplateKeys.CriticalSound.critical]
            let name = reader[TemplateKeys.CriticalSound.name] ?? TemplateText(literal: "default")
            return .critical(name: name, volume: reader[TemplateKeys.CriticalSound.volume])
        }
    }
}

extension ValueDecoder where Value == LiveActivity.Moment {
    static var moment: ValueDecoder {
        let form = TextForm.patternOrNumber(#"^(\+([0-9]+(ms|s|m|h|d|w))+|[0-9]{4}-[0-9]{2}-[0-9]{2}.*)$"#)
        return parsed("a time, UNIX seconds, or a duration after sending", example: "+4h", form: form) { text in
            if text.hasPrefix("+") { return WrittenDuration.parse(text.dropFirst()).map { .afterSending($0) } }
            if let time = ISOTime.parse(text) { return .at(time) }
            return Int32(text).map { .at(Timestamp(milliseconds: Int64($0) * 1000)) }
        }
    }
}

extension ValueDecoder where Value == [TemplateValue.Member] {
    /// An object of any shape.
    static var members: ValueDecoder {
        let shape = ValueShape.map(key: .text(summary: "a name"), .anything)
        return ValueDecoder(shape: shape) { field in
            field.members(shape).map { CustomValueDecoder.members($0, of: field) }
        }
    }

    static var custom: ValueDecoder {
        let shape = ValueShape.map(key: .text(summary: "a name"), .anything)
        return ValueDecoder(shape: shape) { field in
            guard let members = field.members(shape) else { return nil }
            if let aps = members.first(where: { $0.key == "aps" }) {
                field.collector.error(
                    "custom holds the key \"aps\", which belongs to Apple",
                    "use the template's keys for the content of aps, and another name for your own key",
                    at: aps.location)
            }
            for member in members where APSKey.onlyInside.contains(member.key) {
                field.collector.warning(
                    "custom holds \(quoted(member.key)), which Apple reads only in aps",
                    "use the template's \(quoted(APSKey.inTemplate(member.key))) if you mean Apple's key",
                    at: member.location
                )
            }
            return CustomValueDecoder.members(members, of: field)
        }
    }
}

/// Converts YAML values into JSON values. Unquoted `true`, `false`, `null` and decimal numbers keep their type, and
/// every other scalar becomes a text. A number in another YAML notation, `0x1F` or `1_000`, is refused, because it
/// would be sent as a text.
private enum CustomValueDecoder {
    static func members(_ members: [FileNode.Member], of field: Field) -> [TemplateValue.Member] {
        members.compactMap { member in
            if member.key.contains("{{") {
                field.collector.error(
                    "the key \(quoted(member.key)) holds a placeholder", "use placeholders in values only",
                    at: member.location)
            }
            return value(Field(name: member.key, node: member.value, collector: field.collector))
                .map { TemplateValue.Member(member.key, $0) }
        }
    }

    private static func value(_ field: Field) -> TemplateValue? {
        switch field.node.content {
        case .list(let nodes):
            .array(nodes.compactMap { value(Field(name: field.name, node: $0, collector: field.collector)) })
        case .object: field.members(.anything).map { .object(members($0, of: field)) }
        case .scalar(let text): field.node.isPlain ? plain(text, field) : text.isEmpty ? empty : templateText(field)
        }
    }

    /// Numbers with a base, with `_` between digits, infinite numbers, and not-a-number.
    private static let numberElsewhere =
        #"^[-+]?(0[xX][0-9A-Fa-f_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9]+(_[0-9]+)+(\.[0-9_]*)?|\.(inf|Inf|INF))$|^\.(nan|NaN|NAN)$"#

    private static let empty = TemplateValue.text(TemplateText(literal: ""))

    private static func templateText(_ field: Field) -> TemplateValue? {
        ValueDecoder<TemplateText>.templateText.read(field).map { .text($0) }
    }

    private static func plain(_ text: String, _ field: Field) -> TemplateValue? {
        switch text {
        case "", "~", "null": return .null
        case "true": return .boolean(true)
        case "false": return .boolean(false)
        default: break
        }
        let mayBeNumber = text.utf8.first.map { (0x30...0x39).contains($0) || "-+.".utf8.contains($0) } ?? false
        guard !mayBeNumber || !TextForm.matches(text, numberElsewhere) else {
            field.error(
                "\(quoted(field.name)): \(text) is a number for some YAML parsers, but would be sent as a text",
                "put it in quotes if it is a text, or write the number in decimal digits")
            return nil
        }
        // JSON allows no leading zeros and no plus sign. Such a text (a code, a phone number) stays a text.
        let digits = text.drop { $0 == "-" }
        let looksNumeric = text.utf8.allSatisfy { (0x30...0x39).contains($0) || "-+.eE".utf8.contains($0) }
        let hasZero = digits.hasPrefix("0") && digits.utf8.count > 1 && !digits.hasPrefix("0.")
        guard looksNumeric, !text.hasPrefix("+"), !hasZero else { return templateText(field) }
        if let integer = Int64(text) { return .integer(integer) }
        guard let number = Double(text) else { return templateText(field) }
        guard number.isFinite, Decimal(text) == Decimal("\(number)") else {
            let kept = number.isFinite ? "it would be sent as \(number)" : "it is too large to send"
            field.error(
                "\(quoted(field.name)): the number \(text) cannot be kept exactly, \(kept)",
                "put it in quotes to send it as a text, or write fewer digits")
            return nil
        }
        return .number(number)
    }

    /// A number as written, digit by digit, so that no machine type loses precision.
    private struct Decimal: Equatable {
        private let isNegative: Bool
        /// The digits without zeros at either end. Empty for zero.
        private let digits: [UInt8]
        /// The exponent of the last digit.
        private let exponent: Int

        /// Returns `nil` if the text is not a decimal number.
        init?(_ text: String) {
            let parts = text.lowercased().split(separator: "e", omittingEmptySubsequences: false)
            let mantissa = parts[0].drop { $0 == "-" || $0 == "+" }
            let halves = mantissa.split(separator: ".", omittingEmptySubsequences: false)
            let written = Int(parts.count > 1 ? parts[1] : "0")
            guard (1...2).contains(halves.count), let written else { return nil }
            var digits = halves.flatMap { Array($0.utf8) }
            guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            // These limits are far beyond every exponent of a double, and prevent an overflow below.
            guard (-1_000_000...1_000_000).contains(written) else { return nil }
            var exponent = written - (halves.count > 1 ? halves[1].utf8.count : 0)
            while digits.last == 0x30 {
                digits.removeLast()
                exponent += 1
            }
            digits = Array(digits.drop { $0 == 0x30 })
            self.digits = digits
            self.exponent = digits.isEmpty ? 0 : exponent
            isNegative = !digits.isEmpty && text.hasPrefix("-")
        }
    }
}
