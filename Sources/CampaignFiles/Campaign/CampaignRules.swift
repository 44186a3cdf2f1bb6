package import Model

/// Checks of a campaign together with its templates. They cover the push type's rules, the match between the campaign's
/// variables and those that the templates use, and probable mistakes.
package enum CampaignRules {
    /// Returns diagnostics. Each names its file, the campaign's or a template's.
    ///
    /// - Parameter variants: the templates of the campaign's variants, except `template` itself.
    package static func check(
        _ campaign: LocatedCampaign, _ template: TemplateSource, variants: [TemplateSource] = []
    ) -> [Diagnostic] {
        checkName(template, expected: campaign.campaign.template)
            + check(campaign, among: [template] + variants, isWhole: true)
    }

    /// - Parameter isWhole: whether all files are present and valid. Otherwise, problems that a missing part might
    ///   explain are
    ///   not reported.
    static func check(_ campaign: LocatedCampaign, among all: [TemplateSource], isWhole: Bool) -> [Diagnostic] {
        let pushType = campaign.unread.contains("push_type") ? nil : campaign.campaign.pushType
        let knowsVariables = !campaign.unread.contains("variables")
        return all.flatMap { template in pushType.map { TemplateRules.check(template, for: $0) } ?? [] }
            + (knowsVariables ? all.flatMap { checkUses(campaign.campaign, $0) } : [])
            + (isWhole ? checkDeclarations(campaign, all.map(\.template)) : [])
            + checkBadges(campaign, all.filter { !$0.unread.contains("badge") }.map(\.template))
            + (isWhole ? CampaignWarnings.check(campaign, all.map(\.template)) : [])
    }

    /// Checks that the template's name in its own file is the name that the campaign uses.
    static func checkName(_ template: TemplateSource, expected: String) -> [Diagnostic] {
        guard expected != template.template.name, !template.unread.contains("template") else { return [] }
        let collector = DiagnosticCollector(path: template.path)
        collector.error(
            "this template is called \(quoted(template.template.name)), but the campaign names \(quoted(expected))",
            "give both the same name", at: template.locations["template"] ?? SourceLocation())
        return collector.diagnostics
    }

    private static func checkUses(_ campaign: Campaign, _ template: TemplateSource) -> [Diagnostic] {
        let collector = DiagnosticCollector(path: template.path)
        let subject = campaign.name.isEmpty ? "the campaign" : "campaign \(quoted(campaign.name))"
        var nearest: [String: String?] = [:]
        for use in template.variableUses where campaign.variables[use.name] == nil && !collector.isFull {
            let known = nearest[use.name] ?? Suggestion.nearest(to: use.name, among: campaign.variables.keys)
            nearest[use.name] = .some(known)
            collector.error(
                "\(subject) has no variable \(quoted(use.name))",
                known.map { "did you mean {{\($0)}}?" }
                    ?? "add it under variables; leave it empty if each run sets its own value",
                at: use.location)
        }
        return collector.diagnostics
    }

    private static func checkDeclarations(_ campaign: LocatedCampaign, _ templates: [Template]) -> [Diagnostic] {
        let collector = DiagnosticCollector(path: campaign.path)
        let used = templates.reduce(into: Set()) { $0.formUnion($1.variables) }
        let subject =
            templates.count == 1 ? "template \(quoted(templates[0].name)) does not use" : "no template uses"
        for name in campaign.campaign.variables.keys.sorted() where !used.contains(name) {
            collector.warning(
                "\(subject) the variable \(quoted(name))", "remove it, or write {{\(name)}} in the template",
                at: campaign.locations["variables.\(name)"] ?? SourceLocation())
        }
        return collector.diagnostics
    }

    /// Checks that all variants add the same number to the badge. The store keeps one badge count per device, whatever
    /// its variant.
    private static func checkBadges(_ campaign: LocatedCampaign, _ templates: [Template]) -> [Diagnostic] {
        let names = campaign.campaign.variants.map(\.template)
        let steps = Set(templates.filter { names.contains($0.name) }.map(\.badgeIncrement))
        guard steps.count > 1 else { return [] }
        let collector = DiagnosticCollector(path: campaign.path)
        collector.error(
            "the variants' templates add different numbers to the badge", "give them the same badge: +n",
            at: campaign.locations["variants"] ?? SourceLocation())
        return collector.diagnostics
    }
}

extension Template {
    fileprivate var badgeIncrement: Int {
        if case .increment(let step) = badge { step } else { 0 }
    }
}

/// Checks campaigns against each other. A name identifies one campaign, for its runs, its reports and its schedule.
package enum SharedNames {
    /// Returns an error at the name in every file that shares its name with another file.
    package static func check(_ campaigns: [LocatedCampaign]) -> [Diagnostic] {
        let named = Dictionary(grouping: campaigns.filter { !$0.campaign.name.isEmpty }, by: \.campaign.name)
        return campaigns.flatMap { campaign in
            let name = campaign.campaign.name
            let all = named[name, default: []]
            return all.filter { $0.path != campaign.path }.map { other in
                shared(
                    name, at: campaign.nameLocation, of: campaign.path, with: other.path,
                    isOfOtherApp: other.campaign.topic != campaign.campaign.topic,
                    owner: owner(of: name, all.map(\.path)))
            }
        }
    }

    /// Returns the file that owns a campaign's name: the file that is named after the campaign, or else the first file
    /// by path.
    package static func owner(of name: String, _ paths: [String]) -> String? {
        let called = paths.filter { $0.hasSuffix("/\(name).yaml") || $0.hasSuffix("/\(name).yml") }
        return (called.isEmpty ? paths : called).min()
    }

    /// - Parameter isOfOtherApp: whether the other file belongs to another app. The path of the other file is then not
    ///   shown, because a caller may be limited to one app.
    package static func shared(
        _ name: String, at location: SourceLocation, of path: String, with other: String, isOfOtherApp: Bool,
        owner: String?
    ) -> Diagnostic {
        let verdict =
            owner == other
            ? "that file is used; this one is ignored"
            : owner == path ? "this file is used; that one is ignored" : "neither file is used"
        return Diagnostic(
            path: path, line: location.line, column: location.column,
            what: "\(isOfOtherApp ? "a campaign of another app" : other) is also called \(quoted(name)); \(verdict)",
            advice: "give one of the two another name")
    }
}

/// Warnings of probable mistakes that are allowed, from the campaign and its templates alone.
enum CampaignWarnings {
    /// The maximum number of checked languages. Each is compared with all languages of a template.
    private static let languagesMax = 200

    static func check(_ source: LocatedCampaign, _ templates: [Template]) -> [Diagnostic] {
        let collector = DiagnosticCollector(path: source.path)
        warnOfUncoveredLanguages(source, templates, collector)
        warnOfExactLanguages(source, collector)
        warnOfShortLife(source, collector)
        if !templates.contains(where: { $0.allows(.noExpiry) }) { warnOfEndlessLife(source, collector) }
        return collector.diagnostics
    }

    /// Warns if a language that the audience names would get the default's text.
    private static func warnOfUncoveredLanguages(
        _ source: LocatedCampaign, _ templates: [Template], _ collector: DiagnosticCollector
    ) {
        for template in templates {
            let locales = template.locales
            for range in source.campaign.audience.expression.languages.prefix(languagesMax) {
                guard let choice = template.localeChoice(for: range), choice.fit == .fallback,
                    !locales.contains(where: { range.selects($0) })
                else { continue }
                collector.warning(
                    "the audience selects \(quoted(range.description)), for which template \(quoted(template.name)) "
                        + "has no text; those devices get \(locales[choice.index])",
                    "add \(range) under alert, or take it out of the audience",
                    at: source.locations["audience"] ?? SourceLocation())
            }
        }
    }

    /// Warns of `locale = "de"`, which selects exactly this tag, while `locale in ("de")` also selects de-AT.
    private static func warnOfExactLanguages(_ source: LocatedCampaign, _ collector: DiagnosticCollector) {
        for tag in Set(source.campaign.audience.expression.exactLanguages).map({ quoted($0.description) }).sorted()
            .prefix(languagesMax)
        {
            collector.warning(
                "locale = \(tag) selects only devices whose tag is exactly \(tag), without a region",
                "write locale in (\(tag)), which selects the language with all its regions",
                at: source.locations["audience"] ?? SourceLocation())
        }
    }

    /// Warns of an alert without an expiration. APNs keeps such a push as long as it chooses (`ProviderProtocol`
    /// section 4).
    private static func warnOfEndlessLife(_ source: LocatedCampaign, _ collector: DiagnosticCollector) {
        guard source.campaign.pushType == .alert, source.campaign.expiresAfter == nil else { return }
        collector.warning(
            "an alert without expires_after: Apple keeps it up to 30 days for a phone that is off, and shows it later",
            "write how long the text is relevant, such as expires_after: 4h; 0 means one attempt, not stored by APNs",
            at: source.locations["push_type"] ?? SourceLocation(), rule: .noExpiry)
    }

    /// Warns if a run of `max_reach` devices takes longer than `expires_after`, because its last devices would get
    /// nothing.
    private static func warnOfShortLife(_ source: LocatedCampaign, _ collector: DiagnosticCollector) {
        guard let life = source.campaign.expiresAfter, life > .zero, let pace = source.campaign.pace,
            let reach = source.campaign.guards.maxReach
        else { return }
        let needed = pace.duration(of: reach)
        guard needed > life else { return }
        collector.warning(
            "expires_after is \(WrittenDuration.text(life)); a run of max_reach \(reach) devices at this pace takes "
                + "\(WrittenDuration.text(needed))",
            "raise expires_after or the rate; the last devices would get nothing",
            at: source.locations["expires_after"] ?? SourceLocation())
    }
}

extension AudienceExpression {
    /// The languages that the expression names, in the order written. Excluded languages are not included.
    fileprivate var languages: [LocaleTag] {
        var seen: Set<LocaleTag> = []
        return namedLanguages.filter { seen.insert($0).inserted }
    }

    private var namedLanguages: [LocaleTag] {
        switch self {
        case .all(let parts), .any(let parts): parts.flatMap(\.namedLanguages)
        case .oneOf(.locale, let values): values.compactMap(\.language)
        case .comparison(.locale, .equal, let value): [value.language].compactMap(\.self)
        default: []
        }
    }
}

extension AudienceExpression {
    /// The languages without a region or other subtag that are compared by `=` anywhere in the expression.
    fileprivate var exactLanguages: [LocaleTag] {
        switch self {
        case .all(let parts), .any(let parts): parts.flatMap(\.exactLanguages)
        case .not(let part): part.exactLanguages
        case .comparison(.locale, .equal, let value):
            [value.language].compactMap(\.self).filter { $0.subtags.count == 1 }
        default: []
        }
    }
}

extension AudienceValue {
    fileprivate var language: LocaleTag? {
        if case .locale(let tag) = self { tag } else { nil }
    }
}

/// Checks of a campaign against the configuration: its app must be known, and the app's credential must allow its push
/// type.
package enum CredentialRules {
    /// Returns diagnostics for the campaign's file.
    package static func check(_ campaign: LocatedCampaign, _ configuration: Configuration) -> [Diagnostic] {
        let collector = DiagnosticCollector(path: campaign.path)
        let topic = campaign.campaign.topic
        guard !campaign.unread.contains("topic") else { return [] }
        guard let app = configuration.apps.first(where: { $0.topic == topic }) else {
            let nearest = Suggestion.nearest(to: topic, among: configuration.apps.map(\.topic))
            collector.error(
                "no app in the configuration has the topic \(quoted(topic))",
                nearest.map { "did you mean \(quoted($0))?" } ?? "add it under apps",
                at: campaign.locations["topic"] ?? SourceLocation())
            return collector.diagnostics
        }
        let pushType = campaign.campaign.pushType
        if !campaign.unread.contains("push_type"), pushType.needsProviderToken, case .certificate = app.credential {
            collector.error(
                "push_type \(pushType.rawValue) cannot be sent with a certificate",
                "give the app team_id, key_id and key_path in the configuration",
                at: campaign.locations["push_type"] ?? SourceLocation())
        }
        return collector.diagnostics
    }
}

/// The check that a frequency cap of a campaign's app covers the campaign's class.
package enum CapClassRules {
    /// Returns a warning if no cap covers the campaign's class, because the class is probably misspelt.
    package static func check(_ campaign: LocatedCampaign, _ configuration: Configuration) -> [Diagnostic] {
        let topic = campaign.campaign.topic
        let caps = configuration.apps.first { $0.topic == topic }?.frequencyCaps ?? []
        guard let name = campaign.campaign.ownClass, campaign.campaign.pushType.showsAlert,
            campaign.unread.isDisjoint(with: ["topic", "push_type"]), !caps.isEmpty,
            !caps.contains(where: { $0.covers(name) })
        else { return [] }
        let known = Set(caps.flatMap { $0.classes ?? [] }).sorted()
        let nearest = Suggestion.nearest(to: name, among: known).map { "did you mean \(quoted($0))? " } ?? ""
        let collector = DiagnosticCollector(path: campaign.path)
        collector.warning(
            "no frequency cap of \(topic) covers the class \(quoted(name)), so these alerts have no limit",
            nearest
                + "the limited classes are \(known.joined(separator: ", ")); name one of them, or add \(name) to the "
                + "classes of a cap in the configuration",
            at: campaign.locations["class"] ?? SourceLocation())
        return collector.diagnostics
    }
}
