import Model

extension ValueKind where Value == LocaleTag {
    static var locale: ValueKind {
        parsed("a language tag", example: "pt-BR", form: LocaleTag.form) { LocaleTag(written: $0) }
    }
}

extension LocaleTag {
    fileprivate static let form = TextForm.pattern("^[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*$")

    /// Stricter than reading what a device sends: a language has 2 or 3 letters, so that `german` is a mistake.
    fileprivate init?(written text: String) {
        guard let tag = LocaleTag(text), let language = tag.subtags.first, language.utf8.count <= 3 else { return nil }
        self = tag
    }
}

extension ValueKind where Value == Template.Alert {
    /// Blocks by language, or the keys of ``TemplateKeys/ByApp``.
    static var alert: ValueKind {
        let localized = ValueShape.map(
            key: ValueKind<LocaleTag>.locale.shape, .object(TemplateKeys.Localized.shape))
        let byApp = TemplateKeys.ByApp.shape
        let shape = ValueShape.either([localized, .object(byApp)])
        return ValueKind(shape: shape) { field in
            guard case .object(let members) = field.node.content else {
                field.error(
                    "\"alert\": expected texts by language, found \(field.node.found)",
                    "write alert: {en: {title: \"…\", body: \"…\"}}")
                return nil
            }
            let names = byApp.keys.map(\.name)
            guard members.contains(where: { names.contains($0.key) }) else { return AlertReading.localized(field) }
            return ObjectReader(field, byApp).map { .byApp(AlertReading.byApp($0)) }
        }
    }
}

/// The two forms of `alert`.
private enum AlertReading {
    static func localized(_ field: Field) -> Template.Alert? {
        guard let members = field.members(.anything) else { return nil }
        if members.isEmpty { field.error("alert holds no language", "write alert: {en: {title: \"…\", body: \"…\"}}") }
        var blocks: [Template.LocalizedAlert] = []
        var places: [LocaleTag: Place] = [:]
        for member in members {
            guard let locale = locale(of: member, field.findings) else { continue }
            if let first = places[locale] {
                field.findings.error(
                    "language \(locale) stands twice", "remove this one or the one in line \(first.line)",
                    at: member.place)
                continue
            }
            places[locale] = member.place
            let value = Field(name: member.key, node: member.value, findings: field.findings)
            guard let reader = ObjectReader(value, TemplateKeys.Localized.shape) else { continue }
            blocks.append(block(locale, reader))
        }
        warnOfDifferentPlaceholders(blocks, places, field.findings)
        return blocks.isEmpty ? nil : .localized(blocks)
    }

    private static func locale(of member: FileNode.Member, _ findings: Findings) -> LocaleTag? {
        if TemplateKeys.Localized.shape.keys.contains(where: { $0.name == member.key }) {
            findings.error(
                "alert: \(quoted(member.key)) stands outside a language",
                "put it under one: alert: {en: {\(member.key): \"…\"}}", at: member.place)
            return nil
        }
        guard let locale = LocaleTag(written: member.key) else {
            let names = TemplateKeys.ByApp.shape.keys.map(\.name)
            let nearest = Suggestion.nearest(to: member.key.replacing("-", with: "_"), among: names)
            findings.error(
                "alert: \(quoted(member.key)) is no language tag",
                nearest.map { "did you mean \(quoted($0))?" } ?? "write for example de or pt-BR", at: member.place)
            return nil
        }
        return locale
    }

    private static func block(_ locale: LocaleTag, _ reader: ObjectReader) -> Template.LocalizedAlert {
        let block = Template.LocalizedAlert(
            locale: locale, title: reader[TemplateKeys.Localized.title],
            subtitle: reader[TemplateKeys.Localized.subtitle], body: reader[TemplateKeys.Localized.body])
        if reader.field("title") == nil, reader.field("body") == nil {
            reader.findings.error("language \(locale) has no title and no body", "add one of them", at: reader.place)
        }
        return block
    }

    private static func warnOfDifferentPlaceholders(
        _ blocks: [Template.LocalizedAlert], _ places: [LocaleTag: Place], _ findings: Findings
    ) {
        guard let first = blocks.first, !findings.hasErrors else { return }
        let expected = placeholders(of: first)
        for block in blocks.dropFirst() {
            let own = placeholders(of: block)
            let missing = expected.subtracting(own).sorted().map { "lacks {{\($0)}}" }
            let extra = own.subtracting(expected).sorted().map { "has {{\($0)}} besides" }
            guard !missing.isEmpty || !extra.isEmpty else { continue }
            findings.warning(
                "\(block.locale) \((missing + extra).joined(separator: ", ")), unlike \(first.locale)",
                "use the same placeholders in every language", at: places[block.locale] ?? Place())
        }
    }

    private static func placeholders(of block: Template.LocalizedAlert) -> Set<String> {
        block.texts.reduce(into: []) { names, text in
            names.formUnion(text.variables)
            names.formUnion(text.deviceFields.map { "device.\($0.name)" })
        }
    }

    static func byApp(_ reader: ObjectReader) -> Template.LocKeyAlert {
        for name in ["loc", "title_loc", "subtitle_loc"] where reader.field("\(name)_key") == nil {
            guard let place = reader.keyPlace("\(name)_args") else { continue }
            reader.findings.error("\(name)_args without \(name)_key", "add \(name)_key", at: place)
        }
        return Template.LocKeyAlert(
            locKey: reader[TemplateKeys.ByApp.locKey], locArgs: reader[TemplateKeys.ByApp.locArgs] ?? [],
            titleLocKey: reader[TemplateKeys.ByApp.titleLocKey],
            titleLocArgs: reader[TemplateKeys.ByApp.titleLocArgs] ?? [],
            subtitleLocKey: reader[TemplateKeys.ByApp.subtitleLocKey],
            subtitleLocArgs: reader[TemplateKeys.ByApp.subtitleLocArgs] ?? [])
    }
}
