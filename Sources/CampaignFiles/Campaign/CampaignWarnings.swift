import Model

/// What is allowed and probably not meant, told from the campaign and its templates alone.
enum CampaignWarnings {
    static func check(_ source: CampaignSource, _ templates: [Template]) -> [Diagnostic] {
        let findings = Findings(path: source.path)
        warnOfUncoveredLanguages(source, templates, findings)
        warnOfShortLife(source, findings)
        return findings.diagnostics
    }

    /// A language that the audience asks for by name should not get the default's text.
    private static func warnOfUncoveredLanguages(
        _ source: CampaignSource, _ templates: [Template], _ findings: Findings
    ) {
        for template in templates {
            let locales = template.locales
            guard let fallback = template.localeIndex(for: nil) else { continue }
            for range in source.campaign.audience.expression.languages {
                let isCovered = locales.contains { range.fallbacks.contains($0) || range.selects($0) }
                guard !isCovered else { continue }
                findings.warning(
                    "the audience selects \(quoted(range.description)), for which template \(quoted(template.name)) "
                        + "has no text; those devices get \(locales[fallback])",
                    "add \(range) under alert, or take it out of the audience",
                    at: source.places["audience"] ?? Place())
            }
        }
    }

    /// The last devices of a full run would be too late.
    private static func warnOfShortLife(_ source: CampaignSource, _ findings: Findings) {
        guard let life = source.campaign.expiresAfter, life > .zero, let pace = source.campaign.pace,
            let reach = source.campaign.guards.maxReach
        else { return }
        let needed = pace.duration(of: reach)
        guard needed > life else { return }
        findings.warning(
            "expires_after is \(WrittenDuration.text(life)), a run of max_reach \(reach) devices at this pace takes "
                + "\(WrittenDuration.text(needed))",
            "raise expires_after or the rate; the last devices would get nothing",
            at: source.places["expires_after"] ?? Place())
    }
}

extension AudienceExpression {
    /// The languages the expression asks for by name, in the order written; what it excludes is none of them.
    fileprivate var languages: [LocaleTag] {
        switch self {
        case .all(let parts), .any(let parts):
            parts.flatMap(\.languages).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
        case .oneOf(.locale, let values): values.compactMap(\.language)
        case .comparison(.locale, .equal, let value): [value.language].compactMap(\.self)
        default: []
        }
    }
}

extension AudienceValue {
    fileprivate var language: LocaleTag? {
        if case .locale(let tag) = self { tag } else { nil }
    }
}
