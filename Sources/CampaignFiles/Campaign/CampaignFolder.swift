package import Model

/// A campaign with its template, found by name as `fanfare validate`, `plan` and `run` do.
package struct CampaignFolder: Sendable {
    /// Paths of folders, without a slash at the end.
    package var campaigns: String
    package var templates: String

    package init(campaigns: String, templates: String) {
        self.campaigns = campaigns
        self.templates = templates
    }

    package func campaignPath(_ name: String) -> String { "\(campaigns)/\(name).yaml" }
    package func templatePath(_ name: String) -> String { "\(templates)/\(name).yaml" }

    /// As ``loadWhole(path:)``, without the templates of variants.
    package func load(path: String) -> (campaign: Campaign?, template: Template?, diagnostics: [Diagnostic]) {
        let loaded = loadWhole(path: path)
        return (loaded.campaign, loaded.template, loaded.diagnostics)
    }

    /// Reads a campaign file and every template it names and checks them, each alone and together.
    package func loadWhole(path: String) -> LoadedCampaign {
        let (source, own) = CampaignFile.load(path: path)
        var loaded = LoadedCampaign(source: source, diagnostics: own)
        guard let source else { return loaded }
        loaded.diagnostics += fileNameCheck(source)
        let uses =
            [TemplateUse(name: source.campaign.template, key: "template")]
            + source.campaign.variants.map { TemplateUse(name: $0.template, key: "variants.\($0.name)") }
        var templates: [String: TemplateSource] = [:]
        var names: [String] = []
        for use in uses where !names.contains(use.name) {
            names.append(use.name)
            let (template, diagnostics) = TemplateFile.load(path: templatePath(use.name))
            templates[use.name] = template
            loaded.diagnostics += diagnostics.map { template == nil ? pointed($0, at: source, use) : $0 }
            if let template, use.key != "template" {
                loaded.diagnostics += CampaignRules.checkName(template, expected: use.name)
            }
        }
        guard templates.count == names.count, let first = templates[source.campaign.template] else { return loaded }
        let others = names.dropFirst().compactMap { templates[$0] }
        loaded.diagnostics += CampaignRules.check(source, first, variants: others)
        guard !loaded.diagnostics.contains(where: { $0.severity == .error }) else { return loaded }
        loaded.campaign = source.campaign
        loaded.template = first.template
        for variant in source.campaign.variants {
            loaded.variantTemplates[variant.name] = templates[variant.template]?.template
        }
        return loaded
    }

    /// A key of the campaign file that names a template.
    private struct TemplateUse {
        var name: String
        var key: String
    }

    /// A copied file with the old `campaign:` in it would add its runs to those of the campaign it was copied from.
    private func fileNameCheck(_ source: CampaignSource) -> [Diagnostic] {
        let file = source.path.split(separator: "/").last.map(String.init) ?? source.path
        let stem = file.hasSuffix(".yaml") ? String(file.dropLast(5)) : file
        let collector = DiagnosticCollector(path: source.path)
        if stem != source.campaign.name, let location = source.locations["campaign"] {
            collector.warning(
                "the file is called \(quoted(file)), the campaign in it \(quoted(source.campaign.name))",
                "give both the same name", at: location)
        }
        return collector.diagnostics
    }

    /// A template file that cannot be read at all is reported at the line of the campaign file that names it.
    private func pointed(_ diagnostic: Diagnostic, at source: CampaignSource, _ use: TemplateUse) -> Diagnostic {
        guard diagnostic.line == 0, let location = source.locations[use.key] else { return diagnostic }
        return Diagnostic(
            path: source.path, line: location.line, column: location.column,
            what: "template \(quoted(use.name)) (\(diagnostic.path)): \(diagnostic.what)",
            advice: diagnostic.advice)
    }
}

/// A campaign with all its templates, and the diagnostics of all their files. The values are there only when none of
/// those is an error.
package struct LoadedCampaign: Sendable {
    /// With the locations of its keys, for checks against a configuration or a store; there as soon as the campaign file
    /// itself is right.
    package var source: CampaignSource?
    package var campaign: Campaign?
    package var template: Template?
    /// By variant's name, one for every variant; empty when the campaign has none.
    package var variantTemplates: [String: Template] = [:]
    package var diagnostics: [Diagnostic] = []
}
