package import Model

/// Checks of a campaign together with its template: the push type's rules, and that variables meet.
package enum CampaignRules {
    /// Each diagnostic names the file it is about, the campaign's or the template's.
    package static func check(_ campaign: CampaignSource, _ template: TemplateSource) -> [Diagnostic] {
        TemplateRules.check(template, for: campaign.campaign.pushType) + checkName(campaign, template)
            + checkUses(campaign.campaign, template) + checkDeclarations(campaign, template.template)
    }

    private static func checkName(_ campaign: CampaignSource, _ template: TemplateSource) -> [Diagnostic] {
        guard campaign.campaign.template != template.template.name else { return [] }
        let findings = Findings(path: template.path)
        findings.error(
            "this template is called \(quoted(template.template.name)), "
                + "the campaign asks for \(quoted(campaign.campaign.template))",
            "give both the same name", at: template.places["template"] ?? Place())
        return findings.diagnostics
    }

    private static func checkUses(_ campaign: Campaign, _ template: TemplateSource) -> [Diagnostic] {
        let findings = Findings(path: template.path)
        for use in template.variableUses where campaign.variables[use.name] == nil {
            let nearest = Suggestion.nearest(to: use.name, among: campaign.variables.keys)
            findings.error(
                "campaign \(quoted(campaign.name)) has no variable \(quoted(use.name))",
                nearest.map { "did you mean {{\($0)}}?" }
                    ?? "add it under variables; empty when each run gives its own",
                at: use.place)
        }
        return findings.diagnostics
    }

    private static func checkDeclarations(_ campaign: CampaignSource, _ template: Template) -> [Diagnostic] {
        let findings = Findings(path: campaign.path)
        for name in campaign.campaign.variables.keys.sorted() where !template.variables.contains(name) {
            findings.warning(
                "template \(quoted(template.name)) does not use the variable \(quoted(name))",
                "remove it, or write {{\(name)}} in the template",
                at: campaign.places["variables.\(name)"] ?? Place())
        }
        return findings.diagnostics
    }
}
