import Model

extension ValueDecoder where Value == LocaleTag {
    static var locale: ValueDecoder {
        parsed("a language tag", example: "pt-BR", form: .pattern(LocaleTag.pattern)) { LocaleTag(written: $0) }
    }
}

extension LocaleTag {
    fileprivate static let pattern = "^[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*$"

    /// Parses a written tag more strictly than a device's tag. A language has 2 or 3 letters, so `german` is a mistake.
    package init?(written text: String) {
        guard TextForm.matches(text, Self.pattern), let tag = LocaleTag(text), let language = tag.subtags.first,
            language.utf8.count <= 3
        else { return nil }
        self = tag
    }
}

extension ValueDecoder where Value == Template.Alert {
    /// Texts by language, or the keys of ``TemplateKeys/ByApp``.
    static var alert: ValueDecoder {
        let localized = ValueShape.map(
            key: ValueDecoder<LocaleTag>.locale.shape, .object(TemplateKeys.Localized.shape))
        let byApp = TemplateKeys.ByApp.shape
        let shape = ValueShape.either([localized, .object(byApp)])
        return ValueDecoder(shape: shape) { field in
            guard case .object(let members) = field.node.content else {
                field.error(
                    "\"alert\": expected texts by language, found \(field.node.found)",
                    "write alert: {en: {title: \"…\", body: \"…\"}}")
                return nil
            }
            let names = byApp.keys.map(\.name)
            guard members.contains(where: { names.contains($0.key) }) else { return AlertDecoder.localized(field) }
            return ObjectReader(field, byApp).map { .byApp(AlertDecoder.byApp($0)) }
        }
    }
}

/// The two forms of `alert`.
private enum AlertDecoder {
    static func localized(_ field: Field) -> Template.Alert? {
        guard let members = field.members(.anything) else { return nil }
        if members.isEmpty { field.error("alert has no language", "write alert: {en: {title: \"…\", body: \"…\"}}") }
        var blocks: [Template.LocalizedAlert] = []
        var locations: [LocaleTag: SourceLocation] = [:]
        for member in members {
            guard let locale = locale(of: member, field.collector) else { continue }
            if let first = locations[locale] {
                field.collector.error(
                    "language \(locale) appears twice", "remove this one or the one on line \(first.line)",
                    at: member.location)
                continue
            }
            locations[locale] = member.location
            let value = Field(name: member.key, node: member.value, collector: field.collector)
            guard let reader = ObjectReader(value, TemplateKeys.Localized.shape) else { continue }
            blocks.append(block(locale, reader))
        }
        warnOfDifferentPlaceholders(blocks, locations, field.collector)
        return blocks.isEmpty ? nil : .localized(blocks)
    }

    private static func locale(of member: FileNode.Member, _ collector: DiagnosticCollector) -> LocaleTag? {
        if TemplateKeys.Localized.shape.keys.contains(where: { $0.name == member.key }) {
            collector.error(
                "alert: \(quoted(member.key)) is outside a language",
                "put it under one: alert: {en: {\(member.key): \"…\"}}", at: member.location)
            return nil
        }
        guard let locale = LocaleTag(written: member.key) else {
            let names = TemplateKeys.ByApp.shape.keys.map(\.name)
            let nearest = Suggestion.nearest(to: member.key.replacing("-", with: "_"), among: names)
            collector.error(
                "alert: \(quoted(member.key)) is not a language tag",
                nearest.map { "did you mean \(quoted($0))?" } ?? "write for example de or pt-BR", at: member.location)
            return nil
        }
        return locale
    }

    private static func block(_ locale: LocaleTag, _ reader: ObjectReader) -> Template.LocalizedAlert {
        let block = Template.LocalizedAlert(
            locale: locale, title: reader[TemplateKeys.Localized.title],
            subtitle: reader[TemplateKeys.Localized.subtitle], body: reader[TemplateKeys.Localized.body])
        if reader.field("title") == nil, reader.field("body") == nil {
            reader.collector.error(
                "language \(locale) has no title and no body", "add one of them", at: reader.location)
        }
        return block
    }

    private static func warnOfDifferentPlaceholders(
        _ blocks: [Template.LocalizedAlert], _ locations: [LocaleTag: SourceLocation], _ collector: DiagnosticCollector
    ) {
        guard let first = blocks.first, !collector.hasErrors else { return }
        let expected = placeholders(of: first)
        for block in blocks.dropFirst() {
            let own = placeholders(of: block)
            let missing = expected.subtracting(own).sorted().map { "lacks {{\($0)}}" }
            let extra = own.subtracting(expected).sorted().map { "has {{\($0)}} besides" }
            guard !missing.isEmpty || !extra.isEmpty else { continue }
            collector.warning(
                "\(block.locale) \((missing + extra).joined(separator: ", ")), unlike \(first.locale)",
                "use the same placeholders in every language", at: locations[block.locale] ?? SourceLocation())
        }
    }

    private static func placeholders(of block: Template.LocalizedAlert) -> Set<String> {
        block.texts.reduce(into: []) { names, text in
            names.formUnion(text.variables)
            names.formUnion(text.deviceFields.map { "device.\($0.templateName)" })
        }
    }

    static func byApp(_ reader: ObjectReader) -> Template.LocKeyAlert {
        for name in ["loc", "title_loc", "subtitle_loc"] where reader.field("\(name)_key") == nil {
            guard let location = reader.keyLocation("\(name)_args") else { continue }
            reader.collector.error("\(name)_args without \(name)_key", "add \(name)_key", at: location)
        }
        return Template.LocKeyAlert(
            locKey: reader[TemplateKeys.ByApp.locKey], locArgs: reader[TemplateKeys.ByApp.locArgs] ?? [],
            titleLocKey: reader[TemplateKeys.ByApp.titleLocKey],
            titleLocArgs: reader[TemplateKeys.ByApp.titleLocArgs] ?? [],
            subtitleLocKey: reader[TemplateKeys.ByApp.subtitleLocKey],
            subtitleLocArgs: reader[TemplateKeys.ByApp.subtitleLocArgs] ?? [])
    }
}
