package import Model

/// A campaign with the locations of its keys, for checks that need more than the one file.
package struct LocatedCampaign: Sendable {
    package var path: String
    package var campaign: Campaign
    /// Where each key stands; variables as `variables.title`, variants as `variants.a`.
    package var locations: [String: SourceLocation]
}

/// Reads campaign files. All problems of a file are reported at once; there is a value only when none is an error.
package enum CampaignFile {
    /// The campaign alone.
    package static func read(text: String, path: String) -> (Campaign?, [Diagnostic]) {
        let (source, diagnostics) = source(text: text, path: path)
        return (source?.campaign, diagnostics)
    }

    /// Reads the file at `path`, at most 1 MiB of UTF-8.
    package static func load(path: String) -> (LocatedCampaign?, [Diagnostic]) {
        let (text, diagnostics) = FileText.load(path)
        guard let text else { return (nil, diagnostics) }
        return source(text: text, path: path)
    }

    /// The campaign with the locations of its keys.
    package static func source(text: String, path: String) -> (LocatedCampaign?, [Diagnostic]) {
        let text = FileText.withoutMark(text)
        let collector = DiagnosticCollector(path: path, text: text)
        let campaign = FileText.root(of: text, into: collector, advice: "write campaign: and a name")
            .flatMap { ObjectReader($0, CampaignKeys.shape) }
            .flatMap { reader in build(reader).map { (reader, $0) } }
        guard let (reader, value) = campaign, !collector.hasErrors else { return (nil, collector.diagnostics) }
        let source = LocatedCampaign(path: path, campaign: value, locations: locations(reader))
        return (source, collector.diagnostics)
    }

    private static func build(_ reader: ObjectReader) -> Campaign? {
        let name = reader[CampaignKeys.name]
        let topic = reader[CampaignKeys.topic]
        let pushType = reader[CampaignKeys.pushType]
        let template = reader[CampaignKeys.template]
        var campaign = Campaign(
            name: name ?? "", topic: topic ?? "", pushType: pushType ?? .alert, template: template ?? "")
        campaign.priority = reader[CampaignKeys.priority] ?? campaign.priority
        campaign.audience = reader[CampaignKeys.audience] ?? .everyone
        campaign.audienceSQL = reader[CampaignKeys.audienceSQL]
        campaign.variables = reader[CampaignKeys.variables] ?? [:]
        campaign.schedule = reader[CampaignKeys.schedule]
        campaign.feed = reader[CampaignKeys.trigger]
        campaign.expiresAfter = reader[CampaignKeys.expiresAfter] ?? campaign.expiresAfter
        campaign.collapse = reader[CampaignKeys.collapse] ?? campaign.collapse
        campaign.pace = reader[CampaignKeys.pace]
        campaign.guards = reader[CampaignKeys.guards] ?? campaign.guards
        campaign.onUnknown = reader[CampaignKeys.onUnknown] ?? campaign.onUnknown
        campaign.maxAttempts = reader[CampaignKeys.retry] ?? campaign.maxAttempts
        campaign.holdoutPercent = reader[CampaignKeys.holdout]
        campaign.variants = reader[CampaignKeys.variants] ?? []
        if pushType != nil { checkPriority(campaign, reader) }
        FeedTriggerRules.check(campaign, reader)
        if reader.keyLocation("audience") != nil, let location = reader.keyLocation("audience_sql") {
            reader.collector.error("the campaign holds audience and audience_sql", "keep one of the two", at: location)
        }
        return name == nil || topic == nil || pushType == nil || template == nil ? nil : campaign
    }

    private static func checkPriority(_ campaign: Campaign, _ reader: ObjectReader) {
        let allowed = campaign.pushType.allowedPriorities
        guard !allowed.contains(campaign.priority), let field = reader.field("priority") else { return }
        let words = allowed.map { String($0.rawValue) }.joined(separator: " or ")
        field.error(
            "priority \(campaign.priority.rawValue) is not allowed with push_type \(campaign.pushType.rawValue)",
            "write priority: \(words)"
                + (campaign.pushType == .background ? "; APNs does not deliver it otherwise" : ""))
    }

    private static func locations(_ reader: ObjectReader) -> [String: SourceLocation] {
        var locations = reader.locations
        for key in ["variables", "variants"] {
            guard case .object(let members)? = reader.field(key)?.node.content else { continue }
            for member in members { locations["\(key).\(member.key)"] = member.location }
        }
        return locations
    }
}

/// Reads the values of a run's variables from a file: an object of names and texts, in YAML or JSON.
package enum VariablesFile {
    private static let advice = "write one name: value per line"

    /// All problems at once; values only when there is none.
    package static func load(path: String) -> (values: [String: String]?, diagnostics: [Diagnostic]) {
        let (text, diagnostics) = FileText.load(path)
        guard let text else { return (nil, diagnostics) }
        return read(text: text, path: path)
    }

    package static func read(text: String, path: String) -> (values: [String: String]?, diagnostics: [Diagnostic]) {
        let text = FileText.withoutMark(text)
        let collector = DiagnosticCollector(path: path, text: text)
        guard let root = FileText.root(of: text, into: collector, advice: advice) else {
            return (nil, collector.diagnostics)
        }
        guard case .object(let members) = root.node.content else {
            root.error("expected names and their values, found \(root.node.found)", advice)
            return (nil, collector.diagnostics)
        }
        var values: [String: String] = [:]
        var seen: [String: SourceLocation] = [:]
        for member in members where root.isFirst(member, seen: &seen) {
            if let text = member.value.text, !member.value.isNothing {
                values[member.key] = text
            } else {
                collector.error(
                    "\(quoted(member.key)): expected a text, found \(member.value.found)", advice,
                    at: member.value.location)
            }
        }
        return (collector.hasErrors ? nil : values, collector.diagnostics)
    }
}

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
    private func fileNameCheck(_ source: LocatedCampaign) -> [Diagnostic] {
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
    private func pointed(_ diagnostic: Diagnostic, at source: LocatedCampaign, _ use: TemplateUse) -> Diagnostic {
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
    package var source: LocatedCampaign?
    package var campaign: Campaign?
    package var template: Template?
    /// By variant's name, one for every variant; empty when the campaign has none.
    package var variantTemplates: [String: Template] = [:]
    package var diagnostics: [Diagnostic] = []
}
