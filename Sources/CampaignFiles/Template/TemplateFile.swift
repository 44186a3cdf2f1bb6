package import Model

/// A template with the places of its keys and placeholders, for checks that need more than the one file.
package struct TemplateSource: Sendable {
    package var path: String
    package var template: Template
    /// Where each key of the file stands.
    package var places: [String: Place]
    /// In the order of the file.
    package var variableUses: [VariableUse]
}

/// Reads template files. All problems of a file are reported at once; there is a value only when none is an error.
package enum TemplateFile {
    /// The template alone.
    package static func read(text: String, path: String) -> (Template?, [Diagnostic]) {
        let (source, diagnostics) = source(text: text, path: path)
        return (source?.template, diagnostics)
    }

    /// Reads the file at `path`, at most 1 MiB of UTF-8.
    package static func load(path: String) -> (TemplateSource?, [Diagnostic]) {
        let (text, diagnostics) = FileText.load(path)
        guard let text else { return (nil, diagnostics) }
        return source(text: text, path: path)
    }

    /// The template with the places of its keys and placeholders.
    package static func source(text: String, path: String) -> (TemplateSource?, [Diagnostic]) {
        let text = FileText.withoutMark(text)
        let findings = Findings(path: path, text: text)
        guard let root = FileText.root(of: text, into: findings, advice: "write template: and a name"),
            let reader = ObjectReader(APSReading.without(root), TemplateKeys.shape)
        else { return (nil, findings.diagnostics) }
        let template = build(reader)
        guard let template, !findings.hasErrors else { return (nil, findings.diagnostics) }
        let uses = findings.variableUses.sorted { ($0.place.line, $0.place.column) < ($1.place.line, $1.place.column) }
        let source = TemplateSource(path: path, template: template, places: reader.places, variableUses: uses)
        return (source, findings.diagnostics)
    }

    private static func build(_ reader: ObjectReader) -> Template? {
        let name = reader[TemplateKeys.name]
        var template = Template(name: name ?? "")
        template.defaultLocale = reader[TemplateKeys.defaultLocale]
        template.alert = reader[TemplateKeys.alert]
        template.sound = reader[TemplateKeys.sound]
        template.badge = reader[TemplateKeys.badge]
        template.category = reader[TemplateKeys.category]
        template.threadID = reader[TemplateKeys.threadID]
        template.targetContentID = reader[TemplateKeys.targetContentID]
        template.filterCriteria = reader[TemplateKeys.filterCriteria]
        template.launchImage = reader[TemplateKeys.launchImage]
        template.contentAvailable = reader[TemplateKeys.contentAvailable] ?? false
        template.mutableContent = reader[TemplateKeys.mutableContent] ?? false
        template.interruptionLevel = reader[TemplateKeys.interruptionLevel]
        template.relevanceScore = reader[TemplateKeys.relevanceScore]
        template.custom = reader[TemplateKeys.custom] ?? []
        template.liveActivity = LiveActivityReading.activity(reader)
        template.pushMagic = reader[TemplateKeys.mdm]
        checkRelevance(of: template, reader)
        checkDefaultLocale(of: template, reader)
        return name == nil ? nil : template
    }

    private static func checkRelevance(of template: Template, _ reader: ObjectReader) {
        guard let score = template.relevanceScore, template.liveActivity == nil, !(0...1).contains(score) else {
            return
        }
        reader.field("relevance_score")?.refuse(.number(0...1))
    }

    private static func checkDefaultLocale(of template: Template, _ reader: ObjectReader) {
        let locales = template.locales
        guard let place = reader.field("default_locale")?.place else {
            if let first = locales.first, locales.count > 1 {
                reader.findings.warning(
                    "no default_locale: a device in a language not listed gets \(first)",
                    "add default_locale: \(first)", at: reader.keyPlace("alert") ?? reader.place)
            }
            return
        }
        guard let locale = template.defaultLocale, !locales.contains(locale) else { return }
        let list = locales.map(\.description)
        if list.isEmpty {
            guard reader.keyPlace("alert") == nil || template.alert != nil else { return }
            reader.findings.error(
                "default_locale without texts by language", "remove it, or write texts under alert", at: place)
        } else {
            let nearest = Suggestion.nearest(to: locale.description, among: list).map { "did you mean \(quoted($0))?" }
            reader.findings.error(
                "default_locale \(locale) is not among the languages of alert",
                nearest ?? "use one of \(list.joined(separator: ", "))", at: place)
        }
    }
}
