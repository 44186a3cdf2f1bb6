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

    /// Checks templates with a campaign's values of variables.
    package static func check(_ campaign: LocatedCampaign, _ templates: [TemplateSource]) -> [Diagnostic] {
        templates.flatMap { check($0, values: campaign.campaign.variables) }
    }

    /// Returns an error for each variable that has no value when the schedule starts the campaign. A run that a person
    /// starts may still give the values, so only the check of files includes these errors.
    ///
    /// In a campaign with a feed, ``FeedTriggerRules`` reports such variables.
    ///
    /// - Parameter nexts: the next starts with the values that people gave for them. If the first has all values, the
    ///   result is a warning about the second, or empty.
    package static func missingValues(
        _ source: LocatedCampaign, _ templates: [TemplateSource], nexts: [(when: String, values: [String: String])] = []
    ) -> [Diagnostic] {
        let campaign = source.campaign
        let used = templates.map(\.template).filter { template in
            template.name == campaign.template || campaign.variants.contains { $0.template == template.name }
        }
        // CampaignRules reports a variable that the campaign does not declare.
        let missing = campaign.missingValues(in: used).filter { campaign.variables[$0] != nil }
        if let next = nexts.first, !missing.isEmpty, campaign.missingValues(in: used, given: next.values).isEmpty {
            return nexts.dropFirst().first.flatMap { after in
                let missing = campaign.missingValues(in: used, given: after.values)
                return missing.isEmpty ? nil : [partly(source, missing, next.when, after.when)]
            } ?? []
        }
        return missing.map { name in
            let location = source.locations["variables.\(name)"] ?? SourceLocation()
            return Diagnostic(
                path: source.path, line: location.line, column: location.column, severity: .error,
                what: "{{\(name)}} has no value when the schedule starts the campaign, and the run will fail",
                advice: "give \(name) a default, or give the next start its values, or remove the schedule and "
                    + "start the campaign by hand",
                rule: .neverFilled)
        }
    }

    private static func partly(
        _ source: LocatedCampaign, _ missing: [String], _ next: String, _ after: String
    ) -> Diagnostic {
        let location = source.locations["variables.\(missing[0])"] ?? SourceLocation()
        return Diagnostic(
            path: source.path, line: location.line, column: location.column, severity: .warning,
            what: "the next start, \(next), has its values; the one after, \(after), has no value for "
                + missing.joined(separator: ", "),
            advice: "give that start its values in time", rule: .neverFilled)
    }
}
