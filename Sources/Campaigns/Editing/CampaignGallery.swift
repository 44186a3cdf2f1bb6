import CampaignFiles
package import Model

/// Campaigns to start from. Each one reaches only devices with the tag `testers`, and at most 1,000 of them, so that no
/// mistake becomes a broadcast.
package enum CampaignGallery: String, CaseIterable, Sendable {
    case episode, news, refresh, comeback, comparison, blank

    package var title: String {
        switch self {
        case .episode: "New episode"
        case .news: "Breaking news"
        case .refresh: "Silent refresh"
        case .comeback: "Bring people back"
        case .comparison: "A/B test"
        case .blank: "Blank"
        }
    }

    package var summary: String {
        switch self {
        case .episode: "Tell listeners that an episode is out. You fill in its title for each send."
        case .news: "A headline that cannot wait, and is out of date an hour later."
        case .refresh: "Wake the app so that it fetches new content. Nothing is shown."
        case .comeback:
            "Remind people who have not opened the app for a month. Choose a time of day by their own clock."
        case .comparison: "Send each of two texts to half of the audience, and compare them."
        case .blank: "One title and one text, for everything else."
        }
    }

    /// The texts of the campaign's file and of its templates' files, by the templates' names.
    package func files(name: String, topic: String) -> (campaign: String, templates: [(name: String, text: String)]) {
        let templates =
            self == .comparison
            ? [
                (name, Self.template(name, "Your week in audio", "Three episodes are waiting for you.")),
                ("\(name)-b", Self.template("\(name)-b", "Three new episodes", "Listen on your way home.")),
            ]
            : [(name, template(name))]
        return (campaign(name, topic), templates)
    }

    private func template(_ name: String) -> String {
        switch self {
        case .episode: Self.template(name, "New episode", "{{title}} is out. Listen now.", link: true)
        case .news:
            Self.template(name, "Breaking news", "{{headline}}", "interruption_level: time-sensitive\n", link: true)
        case .comeback: Self.template(name, "We saved your place", "New episodes are waiting for you.")
        case .comparison, .blank: Self.template(name, "Title", "Text")
        case .refresh:
            """
            template: "\(name)"

            # A silent push contains only the app's own keys.
            custom:
              refresh: content

            """
        }
    }

    private static func template(
        _ name: String, _ title: String, _ body: String, _ more: String = "", link: Bool = false
    ) -> String {
        """
        template: "\(name)"
        default_locale: en

        alert:
          en:
            title: "\(title)"
            body: "\(body)"

        sound: default
        \(more)\(link ? "\ncustom:\n  link_url: \"{{link_url}}\"\n" : "")
        """
    }

    private func campaign(_ name: String, _ topic: String) -> String {
        var text = """
            campaign: "\(name)"
            topic: "\(topic)"
            push_type: \(self == .refresh ? "background" : "alert")
            \(self == .refresh ? "priority: 5\n" : "")template: "\(name)"
            audience: tag("testers")\(self == .comeback ? " and not last_seen within 30 days" : "")

            """
        switch self {
        case .episode: text += "\nvariables:\n  title: \"\"\n  link_url: \"\"\n"
        case .news: text += "\nvariables:\n  headline: \"\"\n  link_url: \"\"\n"
        case .comparison:
            text +=
                "\nvariants:\n  a: {weight: 50, template: \"\(name)\"}\n  b: {weight: 50, template: \"\(name)-b\"}\n"
        case .comeback, .refresh, .blank: break
        }
        text += """

            expires_after: \(self == .news ? "1h" : self == .refresh ? "30m" : "4h")
            guards: {min_reach: 1, max_reach: 1000}

            """
        return text
    }
}

extension ManageFiles {
    /// Creates a campaign with its templates. Nothing is written if one of the files exists, or would have errors.
    /// Returns the change that waits for release, if the campaign does.
    package func create(
        _ name: String, _ files: (campaign: String, templates: [(name: String, text: String)]), mayStart: Bool,
        by actor: Actor, now: Timestamp
    ) async throws -> Int64? {
        try requireNew(.campaign, name)
        for template in files.templates { try requireNew(.template, template.name) }
        let beside = Dictionary(files.templates.map { (pathOfNew(.template, $0.name), $0.text) }) { $1 }
        let found = try await validate(.campaign, name, text: files.campaign, beside: beside, now: now)
        if let problem = found.problems.first(where: { $0.severity == "error" }) {
            throw Failure(.invalidData, problem.what + (problem.advice.isEmpty ? "" : "; \(problem.advice)"))
        }
        let texts =
            [NewText(.campaign, name, text: files.campaign, .new)]
            + files.templates.map { NewText(.template, $0.name, text: $0.text, .new) }
        return try await write(texts, mayStart: mayStart, by: actor, now: now)[0].held
    }

    /// Returns the files of a copy under another name, with a copy of each template that the campaign names. The copy
    /// is started by a person only: two campaigns with the same time or feed would send everything twice.
    package func copy(
        of name: String, as new: String
    ) throws -> (campaign: String, templates: [(name: String, text: String)]) {
        let source = try current(.campaign, name)
        guard let text = source.text else { throw FileRefusal.noText(file: try path(.campaign, name)) }
        let campaign = campaign(ofText: text, name: name)
        var copy = YAMLText(text)
        var edits: [YAMLText.Edit] = [.init(["campaign"], .text(new))]
        for path in [["schedule", "cron"], ["schedule", "at"], ["schedule", "best_hour"], ["trigger"]] {
            edits.append(.init(path, nil))
        }
        if campaign?.schedule?.quietHours == nil {
            edits += ["zone", "unknown_zone", "missed_zone"].map { .init(["schedule", $0], nil) }
        }
        var templates: [(name: String, text: String)] = []
        let uses = campaign.map { TemplateUses($0, copiedAs: new) }
        for (template, own) in uses?.names ?? [] {
            guard let text = try? current(.template, template).text else { continue }
            var copied = YAMLText(text)
            do { try copied.apply([.init(["template"], .text(own))]) } catch { throw Self.unsuitable(template) }
            templates.append((own, copied.written))
            edits += uses?.keys[template, default: []].map { .init($0, .text(own)) } ?? []
        }
        do { try copy.apply(edits) } catch { throw Self.unsuitable(name) }
        return (copy.written, templates)
    }

    private static func unsuitable(_ name: String) -> Failure {
        Failure(.invalidData, "\(name) has errors or an unusual form, and cannot be copied; open its files")
    }
}

/// The templates of a campaign, and the names that a copy of the campaign gives to their copies.
private struct TemplateUses {
    /// Each template with the name of its copy, in the order of the file.
    private(set) var names: [(template: String, own: String)] = []
    /// The keys of the campaign file that name a template, by template.
    private(set) var keys: [String: [[String]]] = [:]

    /// - Parameter new: the name of the copied campaign.
    init(_ campaign: Campaign, copiedAs new: String) {
        add(campaign.template, ["template"], as: new)
        for variant in campaign.variants {
            add(variant.template, ["variants", variant.name, "template"], as: "\(new)-\(variant.name)")
        }
        if let correction = campaign.correction { add(correction, ["correction"], as: "\(new)-correction") }
    }

    /// - Parameter name: the name of the copy, unless another copy already has it.
    private mutating func add(_ template: String, _ key: [String], as name: String) {
        guard !template.isEmpty else { return }
        defer { keys[template, default: []].append(key) }
        guard keys[template] == nil else { return }
        let name = FileName.problem(with: name) == nil ? name : FileName.name(for: name)
        let used = Set(names.map(\.own))
        let free = (2...).lazy.map { "\(name)-\($0)" }.first { !used.contains($0) }
        names.append((template, used.contains(name) ? free ?? name : name))
    }
}
