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

    /// Reads a campaign file and the template it names and checks both, each alone and together. There are values only
    /// when nothing is an error.
    package func load(path: String) -> (campaign: Campaign?, template: Template?, diagnostics: [Diagnostic]) {
        let (campaign, own) = CampaignFile.load(path: path)
        guard let campaign else { return (nil, nil, own) }
        let (template, others) = TemplateFile.load(path: templatePath(campaign.campaign.template))
        var diagnostics = own + fileNameCheck(campaign)
        guard let template else { return (nil, nil, diagnostics + others.map { pointed($0, at: campaign) }) }
        diagnostics += others + CampaignRules.check(campaign, template)
        let isRefused = diagnostics.contains { $0.severity == .error }
        return isRefused ? (nil, nil, diagnostics) : (campaign.campaign, template.template, diagnostics)
    }

    /// A copied file whose name inside was forgotten would count as another run of the first campaign.
    private func fileNameCheck(_ source: CampaignSource) -> [Diagnostic] {
        let file = source.path.split(separator: "/").last.map(String.init) ?? source.path
        let stem = file.hasSuffix(".yaml") ? String(file.dropLast(5)) : file
        let findings = Findings(path: source.path)
        if stem != source.campaign.name, let place = source.places["campaign"] {
            findings.warning(
                "the file is called \(quoted(file)), the campaign in it \(quoted(source.campaign.name))",
                "give both the same name", at: place)
        }
        return findings.diagnostics
    }

    /// A template file that cannot be read at all is the campaign's mistake: its line names it.
    private func pointed(_ diagnostic: Diagnostic, at source: CampaignSource) -> Diagnostic {
        guard diagnostic.line == 0, let place = source.places["template"] else { return diagnostic }
        return Diagnostic(
            path: source.path, line: place.line, column: place.column,
            what: "template \(quoted(source.campaign.template)) (\(diagnostic.path)): \(diagnostic.what)",
            advice: diagnostic.advice)
    }
}
