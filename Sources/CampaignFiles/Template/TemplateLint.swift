package import Model

/// Warnings of probable mistakes in the texts of templates, at their lines. ``LintRule`` names each rule.
package enum TemplateLint {
    /// - Parameter values: the values of variables, as far as a campaign provides them.
    package static func check(_ source: TemplateSource, values: [String: String] = [:]) -> [Diagnostic] {
        source.template.lint(values).map { finding in
            let key = "alert.\(finding.place.locale).\(finding.place.part)"
            let location = source.locations[key] ?? source.locations["alert"] ?? SourceLocation()
            return Diagnostic(
                path: source.path, line: location.line, column: location.column, severity: .warning,
                what: finding.what, advice: finding.advice, rule: finding.rule)
        }
    }

    /// Checks templates with a campaign's values of variables, and warns of variables without a value.
    package static func check(_ campaign: LocatedCampaign, _ templates: [TemplateSource]) -> [Diagnostic] {
        templates.flatMap { check($0, values: campaign.campaign.variables) } + neverFilled(campaign, templates)
    }

    /// Warns of unset variables in a campaign with a schedule. In a campaign with a feed, ``FeedTriggerRules`` reports
    /// them as errors.
    private static func neverFilled(_ source: LocatedCampaign, _ templates: [TemplateSource]) -> [Diagnostic] {
        let campaign = source.campaign
        guard let schedule = campaign.schedule, schedule.trigger != .none, campaign.feed == nil else { return [] }
        let used = templates.filter { !$0.template.allows(.neverFilled) }
            .reduce(into: Set<String>()) { $0.formUnion($1.template.variables) }
        return campaign.variables.filter { $0.value.isEmpty && used.contains($0.key) }.keys.sorted().map { name in
            let location = source.locations["variables.\(name)"] ?? SourceLocation()
            return Diagnostic(
                path: source.path, line: location.line, column: location.column, severity: .warning,
                what:
                    "{{\(name)}} never gets a value: the campaign is started by its schedule, which sets no variables",
                advice: "give \(name) a default, or start the campaign by hand", rule: .neverFilled)
        }
    }
}
