package import Model

/// What is allowed and probably a mistake in the texts of templates, as warnings at their lines: ``LintRule`` names each.
package enum TemplateLint {
    /// - Parameter values: of variables, where a campaign gives some.
    package static func check(_ source: TemplateSource, values: [String: String] = [:]) -> [Diagnostic] {
        source.template.lint(values).map { finding in
            let key = "alert.\(finding.place.locale).\(finding.place.part)"
            let location = source.locations[key] ?? source.locations["alert"] ?? SourceLocation()
            return Diagnostic(
                path: source.path, line: location.line, column: location.column, severity: .warning,
                what: finding.what, advice: finding.advice, rule: finding.rule)
        }
    }

    /// With the values that a campaign has for its variables, and what it leaves without one.
    package static func check(_ campaign: LocatedCampaign, _ templates: [TemplateSource]) -> [Diagnostic] {
        templates.flatMap { check($0, values: campaign.campaign.variables) } + neverFilled(campaign, templates)
    }

    /// Of a feed's campaign it is an error: ``FeedTriggerRules``.
    private static func neverFilled(_ source: LocatedCampaign, _ templates: [TemplateSource]) -> [Diagnostic] {
        let campaign = source.campaign
        guard let schedule = campaign.schedule, schedule.trigger != .none, campaign.feed == nil else { return [] }
        let used = templates.filter { !$0.template.allows(.neverFilled) }
            .reduce(into: Set<String>()) { $0.formUnion($1.template.variables) }
        return campaign.variables.filter { $0.value.isEmpty && used.contains($0.key) }.keys.sorted().map { name in
            let location = source.locations["variables.\(name)"] ?? SourceLocation()
            return Diagnostic(
                path: source.path, line: location.line, column: location.column, severity: .warning,
                what: "{{\(name)}} never gets a value: the campaign is started by its schedule, which gives none",
                advice: "write a text behind \(name), or start the campaign by hand", rule: .neverFilled)
        }
    }
}
