package import Model
import Platform

/// A campaign with the locations of its keys, for checks that need more than the one file.
package struct LocatedCampaign: Sendable {
    package var path: String
    @Shared package var campaign: Campaign
    /// The SHA-256 in hex of the text that the campaign was read from.
    package let hash: String
    /// The location of each key. Variables are `variables.title`, variants are `variants.a`.
    package var locations: [String: SourceLocation]
    /// Keys that should have a value and have no readable one. Checks that depend on them are skipped.
    var unread: Set<String> = []
    /// The errors of a campaign without feedback. They do not count if the app has feedback for all its campaigns.
    var withoutFeedback: [Diagnostic] = []
    /// Whether the file itself has no error. If false, `campaign` contains only the readable part of the file.
    package var isRight = true

    /// The location of the campaign's name.
    package var nameLocation: SourceLocation { locations["campaign"] ?? SourceLocation() }
}

/// Reads campaign files. All problems of a file are reported together. There is a value only if none is an error.
package enum CampaignFile {
    /// Returns only the campaign.
    package static func read(text: String, path: String) -> (Campaign?, [Diagnostic]) {
        let (source, diagnostics) = source(text: text, path: path)
        return (source?.campaign, diagnostics)
    }

    /// Reads the file at `path`, at most 1 MiB of UTF-8.
    package static func load(path: String) -> (LocatedCampaign?, [Diagnostic]) {
        let (draft, diagnostics) = loadDraft(path: path)
        return (right(draft), diagnostics)
    }

    /// Returns the campaign with the locations of its keys.
    package static func source(text: String, path: String) -> (LocatedCampaign?, [Diagnostic]) {
        let (draft, diagnostics) = draft(text: text, path: path).settled([:])
        return (right(draft), diagnostics)
    }

    /// Reads a file as ``load(path:)`` does, and also returns the readable part of an invalid file, to check its
    /// template.
    ///
    /// - Parameters:
    ///   - unsaved: the unsaved text of the file. `nil` to read the file.
    ///   - usualFeedback: the feedback of campaigns whose file does not say, by app.
    static func loadDraft(
        path: String, unsaved: String? = nil, usualFeedback: [String: CampaignFeedback] = [:]
    ) -> (LocatedCampaign?, [Diagnostic]) {
        if let unsaved { return draft(text: unsaved, path: path).settled(usualFeedback) }
        let (text, diagnostics) = FileText.load(path)
        guard let text else { return (nil, diagnostics) }
        return known.value(of: text, at: path) { draft(text: text, path: path) }.settled(usualFeedback)
    }

    /// A cache, because a page of a campaign reads each file several times, and files seldom change.
    private static let known = TextMemo<Draft>()

    /// The content of a file before the feedback of its app is known.
    private struct Draft: Sendable {
        var source: LocatedCampaign?
        var diagnostics: [Diagnostic]

        /// Gives the campaign the usual feedback of its app, unless the file has the key or the app cannot report about
        /// the campaign's pushes. Then adds the errors of a campaign that has no feedback and needs it.
        func settled(_ usualFeedback: [String: CampaignFeedback]) -> (LocatedCampaign?, [Diagnostic]) {
            guard var source else { return (nil, diagnostics) }
            if source.locations["feedback"] == nil, source.campaign.pushType.canHaveFeedback,
                let usual = usualFeedback[source.campaign.topic]
            {
                source.campaign.feedback = usual
            }
            guard source.campaign.feedback == nil, !source.withoutFeedback.isEmpty else { return (source, diagnostics) }
            source.isRight = false
            return (source, (diagnostics + source.withoutFeedback).inOrderOfFile)
        }
    }

    private static func right(_ draft: LocatedCampaign?) -> LocatedCampaign? {
        draft.flatMap { $0.isRight ? $0 : nil }
    }

    private static func draft(text: String, path: String) -> Draft {
        let hash = Digest.sha256Hex(Array(text.utf8))
        let text = FileText.withoutMark(text)
        let collector = DiagnosticCollector(path: path, text: text)
        let reader = FileText.root(of: text, into: collector, advice: "write campaign: and a name")
            .flatMap { ObjectReader($0, CampaignKeys.shape) }
        guard let reader else { return Draft(source: nil, diagnostics: collector.diagnostics) }
        let withoutFeedback = DiagnosticCollector(path: path)
        let (campaign, unread) = build(reader, withoutFeedback)
        let source = LocatedCampaign(
            path: path, campaign: campaign, hash: hash, locations: locations(reader), unread: unread,
            withoutFeedback: withoutFeedback.diagnostics, isRight: !collector.hasErrors)
        return Draft(source: source, diagnostics: collector.diagnostics)
    }

    private static func build(
        _ reader: ObjectReader, _ withoutFeedback: DiagnosticCollector
    ) -> (Campaign, unread: Set<String>) {
        let name = reader[CampaignKeys.name]
        let topic = reader[CampaignKeys.topic]
        let pushType = reader[CampaignKeys.pushType]
        let template = reader[CampaignKeys.template]
        var campaign = Campaign(
            name: name ?? "", topic: topic ?? "", pushType: pushType ?? .alert, template: template ?? "")
        let priority = reader[CampaignKeys.priority]
        campaign.priority = priority ?? campaign.priority
        campaign.ownClass = reader[CampaignKeys.ownClass]
        campaign.audience = reader[CampaignKeys.audience] ?? .everyone
        campaign.audienceSQL = reader[CampaignKeys.audienceSQL]
        // Store the explicit default as `nil`, so that it gives the same plan as an absent key.
        campaign.dedupe = reader[CampaignKeys.dedupe].flatMap { $0 == .all ? nil : $0 }
        let variables = reader[CampaignKeys.variables]
        campaign.variables = variables ?? [:]
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
        let stages = reader[CampaignKeys.stages]
        campaign.stages = stages
        // Stages that could not be decoded are unknown, so nothing is put before their rest.
        if let decide = reader[CampaignKeys.decide], stages != nil || reader.keyLocation("stages") == nil {
            campaign.stages = StageRules.adding(decide, to: stages)
        }
        campaign.correction = reader[CampaignKeys.correction]
        campaign.feedback = reader[CampaignKeys.feedback] ?? nil
        campaign.conversion = reader[CampaignKeys.conversion]
        if pushType != nil, priority != nil { checkPriority(campaign, reader) }
        let unread = reader.unread([
            ("campaign", name != nil), ("topic", topic != nil), ("push_type", pushType != nil),
            ("template", template != nil), ("variables", variables != nil),
        ])
        StageRules.check(campaign, reader, withoutFeedback)
        BestHourRules.check(campaign, reader, withoutFeedback)
        FeedTriggerRules.check(campaign, reader, knowsVariables: !unread.contains("variables"))
        if reader.lacks(CampaignKeys.shape.oneOf) {
            reader.collector.error(
                "the campaign has no audience",
                "write audience: and an expression, or audience: everyone for every device of the topic",
                at: reader.location)
        }
        if reader.keyLocation("audience") != nil, let location = reader.keyLocation("audience_sql") {
            reader.collector.error(
                "the campaign has both audience and audience_sql", "keep one of the two", at: location)
        }
        return (campaign, unread)
    }

    private static func checkPriority(_ campaign: Campaign, _ reader: ObjectReader) {
        let allowed = campaign.pushType.allowedPriorities
        guard !allowed.contains(campaign.priority), let field = reader.field("priority") else { return }
        let priorities = allowed.map { String($0.rawValue) }.joined(separator: " or ")
        field.error(
            "priority \(campaign.priority.rawValue) is not allowed with push_type \(campaign.pushType.rawValue)",
            "write priority: \(priorities)"
                + (campaign.pushType == .background ? "; APNs does not deliver the push otherwise" : ""))
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

    /// Reads the file and reports all problems together. There are values only if there is no problem.
    package static func load(path: String) -> (values: [String: String]?, diagnostics: [Diagnostic]) {
        let (text, diagnostics) = FileText.load(path, takesPipes: true)
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

/// The folders of campaign and template files. Commands such as `fanfare validate`, `plan` and `run` find a file in
/// them by name.
package struct CampaignFolder: Sendable {
    /// The path of the folder, without a slash at the end.
    package var campaigns: String
    package var templates: String
    /// Unsaved texts, by the path of their file. They replace the file's contents.
    package var drafts: [String: String]
    /// The feedback of the campaigns whose file does not say, see ``Configuration/usualFeedback``.
    package var usualFeedback: [String: CampaignFeedback] = [:]

    package init(campaigns: String, templates: String, drafts: [String: String] = [:]) {
        self.campaigns = campaigns
        self.templates = templates
        self.drafts = drafts
    }

    package func campaignPath(_ name: String) -> String { "\(campaigns)/\(name).yaml" }
    package func templatePath(_ name: String) -> String { "\(templates)/\(name).yaml" }

    /// Returns the campaign of one file, or its readable part, with no diagnostics.
    package func source(path: String) -> LocatedCampaign? {
        CampaignFile.loadDraft(path: path, unsaved: drafts[path], usualFeedback: usualFeedback).0
    }

    /// Reads a campaign as ``loadWhole(path:)`` does, and omits the templates of variants.
    package func load(path: String) -> (campaign: Campaign?, template: Template?, diagnostics: [Diagnostic]) {
        let loaded = loadWhole(path: path)
        return (loaded.campaign, loaded.template, loaded.diagnostics)
    }

    /// Reads a campaign file and every template that it names. Checks each file alone and all files together.
    package func loadWhole(path: String) -> LoadedCampaign {
        let (source, own) = CampaignFile.loadDraft(path: path, unsaved: drafts[path], usualFeedback: usualFeedback)
        var loaded = LoadedCampaign(source: source, diagnostics: own)
        guard let source else { return loaded }
        loaded.diagnostics += fileNameCheck(source)
        let uses =
            [TemplateUse(name: source.campaign.template, key: "template")]
            + source.campaign.variants.map { TemplateUse(name: $0.template, key: "variants.\($0.name)") }
            + [source.campaign.correction].compactMap(\.self).map { TemplateUse(name: $0, key: "correction") }
        var templates: [TemplateSource] = []
        var names: Set<String> = []
        for use in uses where !use.name.isEmpty && names.insert(use.name).inserted {
            let path = templatePath(use.name)
            let (template, diagnostics) = TemplateFile.loadDraft(path: path, unsaved: drafts[path])
            loaded.diagnostics += diagnostics.map { template == nil ? pointed($0, at: source, use) : $0 }
            guard let template else { continue }
            templates.append(template)
            loaded.diagnostics += CampaignRules.checkName(template, expected: use.name)
        }
        loaded.templates = templates
        let isWhole = templates.count == names.count && source.isRight && templates.allSatisfy(\.isRight)
        loaded.diagnostics += CampaignRules.check(source, among: templates, isWhole: isWhole)
        let hasRightTemplates = loaded.diagnostics.allSatisfy { $0.severity == .warning || $0.path == path }
        guard templates.count == names.count, hasRightTemplates, source.unread.isEmpty else { return loaded }
        loaded.content = CampaignContent(source.campaign, templates.map(\.template))
        return loaded
    }

    /// A key of the campaign file that names a template.
    private struct TemplateUse {
        var name: String
        var key: String
    }

    /// Warns if the file's name differs from the campaign's name. A copied file with the old `campaign:` would add its
    /// runs to those of the original.
    private func fileNameCheck(_ source: LocatedCampaign) -> [Diagnostic] {
        let file = source.path.split(separator: "/").last.map(String.init) ?? source.path
        let stem = file.hasSuffix(".yaml") ? String(file.dropLast(5)) : file
        let collector = DiagnosticCollector(path: source.path)
        if stem != source.campaign.name, let location = source.locations["campaign"] {
            collector.warning(
                "the file is called \(quoted(file)), but its campaign is called \(quoted(source.campaign.name))",
                "give both the same name", at: location)
        }
        return collector.diagnostics
    }

    /// Moves the diagnostic of an unreadable template file to the line of the campaign file that names the template.
    private func pointed(_ diagnostic: Diagnostic, at source: LocatedCampaign, _ use: TemplateUse) -> Diagnostic {
        guard diagnostic.line == 0, let location = source.locations[use.key] else { return diagnostic }
        return Diagnostic(
            path: source.path, line: location.line, column: location.column,
            what: "template \(quoted(use.name)) (\(diagnostic.path)): \(diagnostic.what)",
            advice: diagnostic.advice)
    }
}

/// A campaign with all its templates, and the diagnostics of all their files. The values are present only if none of
/// the diagnostics is an error.
package struct LoadedCampaign: Sendable {
    /// The campaign with the locations of its keys, for checks against a configuration or a store. If the file is
    /// invalid, this is its readable part, or `nil` if nothing is readable.
    package var source: LocatedCampaign?
    /// The renderable content. It is also present if the campaign file has unrelated errors.
    package var content: CampaignContent?
    package var diagnostics: [Diagnostic] = []
    /// The readable templates, in the order in which the campaign names them.
    package var templates: [TemplateSource] = []

    package var isRight: Bool { diagnostics.allSatisfy { $0.severity == .warning } }
    package var campaign: Campaign? { isRight ? content?.campaign : nil }
    package var template: Template? { isRight ? content?.template : nil }
    /// The templates by variant name, one for every variant. Empty if the campaign has no variants.
    package var variantTemplates: [String: Template] { isRight ? content?.variantTemplates ?? [:] : [:] }
}

/// The input for rendering a campaign's payloads.
package struct CampaignContent: Sendable {
    @Shared package private(set) var campaign: Campaign
    @Shared package private(set) var template: Template
    /// The templates by variant name, one for every variant.
    package let variantTemplates: [String: Template]
    /// The template for a correction, which replaces a faulty push.
    @Shared package private(set) var correction: Template?

    /// Returns `nil` if one of the campaign's templates is missing from the array.
    init?(_ campaign: Campaign, _ templates: [Template]) {
        let byName = Dictionary(templates.map { ($0.name, $0) }) { first, _ in first }
        guard let template = byName[campaign.template] else { return nil }
        var variantTemplates: [String: Template] = [:]
        for variant in campaign.variants {
            guard let own = byName[variant.template] else { return nil }
            variantTemplates[variant.name] = own
        }
        correction = campaign.correction.flatMap { byName[$0] }
        self.campaign = campaign
        self.template = template
        self.variantTemplates = variantTemplates
    }
}
