package import Model

/// Checks of a campaign together with its templates: the push type's rules, that variables meet, and what is probably
/// not meant.
package enum CampaignRules {
    /// Each diagnostic names the file it is about, the campaign's or a template's.
    ///
    /// - Parameter variants: the templates of the campaign's variants that are not `template` itself.
    package static func check(
        _ campaign: CampaignSource, _ template: TemplateSource, variants: [TemplateSource] = []
    ) -> [Diagnostic] {
        let all = [template] + variants
        return checkName(template, expected: campaign.campaign.template)
            + all.flatMap { TemplateRules.check($0, for: campaign.campaign.pushType) }
            + all.flatMap { checkUses(campaign.campaign, $0) } + checkDeclarations(campaign, all.map(\.template))
            + checkBadges(campaign, all.map(\.template)) + CampaignWarnings.check(campaign, all.map(\.template))
    }

    /// A template file must hold the template it is named for.
    static func checkName(_ template: TemplateSource, expected: String) -> [Diagnostic] {
        guard expected != template.template.name else { return [] }
        let findings = Findings(path: template.path)
        findings.error(
            "this template is called \(quoted(template.template.name)), the campaign asks for \(quoted(expected))",
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

    private static func checkDeclarations(_ campaign: CampaignSource, _ templates: [Template]) -> [Diagnostic] {
        let findings = Findings(path: campaign.path)
        let used = templates.reduce(into: Set()) { $0.formUnion($1.variables) }
        let subject =
            templates.count == 1 ? "template \(quoted(templates[0].name)) does not use" : "no template uses"
        for name in campaign.campaign.variables.keys.sorted() where !used.contains(name) {
            findings.warning(
                "\(subject) the variable \(quoted(name))", "remove it, or write {{\(name)}} in the template",
                at: campaign.places["variables.\(name)"] ?? Place())
        }
        return findings.diagnostics
    }

    /// The count on the icon is one per device, whichever variant the device belongs to.
    private static func checkBadges(_ campaign: CampaignSource, _ templates: [Template]) -> [Diagnostic] {
        let names = campaign.campaign.variants.map(\.template)
        let steps = Set(templates.filter { names.contains($0.name) }.map(\.badgeIncrement))
        guard steps.count > 1 else { return [] }
        let findings = Findings(path: campaign.path)
        findings.error(
            "the variants' templates add different numbers to the badge", "give them the same badge: +n",
            at: campaign.places["variants"] ?? Place())
        return findings.diagnostics
    }
}

extension Template {
    fileprivate var badgeIncrement: Int {
        if case .increment(let step) = badge { step } else { 0 }
    }
}
