import Campaigns
import Model

/// The caller's access to files. A caller confined to one app learns nothing of another app's files.
struct CampaignAccess: Sendable {
    private let cases: UseCases
    private let caller: Caller

    init(_ cases: UseCases, _ caller: Caller) {
        self.cases = cases
        self.caller = caller
    }

    /// Throws "not found" if the caller may not see the campaign. A confined caller never sees a file whose app cannot
    /// be read.
    func require(_ campaign: String) throws {
        let topic: String?
        do {
            topic = try cases.files.topic(ofCampaign: campaign)
        } catch  where caller.topic != nil {
            throw Problem.notFound(Self.none(campaign))
        }
        try caller.requireTopic(topic ?? "", orNotFound: Self.none(campaign))
    }

    /// Throws if the current file, the new text or a template that the text names belongs to another app.
    func requireWriting(_ campaign: String, text: String) throws {
        guard caller.topic != nil else { return }
        try requireWriting(
            campaign, topic: cases.files.topic(ofText: text, name: campaign),
            templates: Set(cases.files.templates(ofText: text, name: campaign)))
    }

    /// Throws if the new campaign, or an existing template that it names, belongs to another app.
    ///
    /// - Parameter templates: the templates that are created with it.
    func requireCreating(_ campaign: String, text: String, templates: Set<String>) throws {
        guard caller.topic != nil else { return }
        try requireWriting(
            campaign, topic: cases.files.topic(ofText: text, name: campaign),
            templates: Set(cases.files.templates(ofText: text, name: campaign)).subtracting(templates))
    }

    /// Checks a write of a campaign's text.
    ///
    /// - Parameters:
    ///   - new: the topic of the new text.
    ///   - templates: the templates that the text names.
    private func requireWriting(_ campaign: String, topic new: String?, templates: Set<String>) throws {
        guard let own = caller.topic else { return }
        do {
            // A file that cannot be read now may be another app's.
            let topic = try cases.files.topic(ofCampaign: campaign) ?? ""
            try caller.requireTopic(topic, orNotFound: Self.none(campaign))
        } catch let failure as Failure where failure.kind == .notFound {
            // The campaign does not exist yet.
        }
        guard caller.sees(new ?? "") else {
            throw Problem.forbidden("\(caller.name) is valid only for the app \(own); write topic: \(own)")
        }
        for name in templates.sorted() { try requireTemplate(name) }
    }

    /// Returns whether the caller may see a waiting change, because it might write the same text. The text of a change
    /// is parsed once for all requests.
    func sees(_ change: ChangeResult) async -> Bool {
        do {
            guard change.kind == ManageFiles.Kind.campaign.rawValue else {
                try requireWritingTemplate(change.name)
                return true
            }
            let names = try await cases.files.names(ofWaiting: change.id, change.name, hash: change.etag)
            guard let names else { return false }
            try requireWriting(change.name, topic: names?.topic, templates: names?.templates ?? [])
            return true
        } catch {
            return false
        }
    }

    /// Throws if the caller may not write this text to a file of either kind.
    func requireWriting(_ kind: ManageFiles.Kind, _ name: String, text: String) throws {
        switch kind {
        case .campaign: try requireWriting(name, text: text)
        case .template: try requireWritingTemplate(name)
        }
    }

    /// Validates a text. Sets `held` if the text would wait for release after saving.
    func validatedForCaller(
        _ kind: ManageFiles.Kind, _ name: String, text: String
    ) async throws -> ValidationResult {
        var result = try await validated(kind, name, text: text)
        if !caller.role.may(.run), try await cases.files.startsAutomatically(kind, name, text: text) {
            result.held = true
        }
        return result
    }

    /// Validates an unsaved text. Returns only the findings that the caller may see.
    ///
    /// - Parameter beside: the unsaved texts of other files, by path.
    func validated(
        _ kind: ManageFiles.Kind, _ name: String, text: String, beside: [String: String] = [:]
    ) async throws -> ValidationResult {
        switch kind {
        case .campaign: try requireTemplates(ofText: text, campaign: name)
        case .template: try requireTemplate(name)
        }
        return visible(try await cases.files.validate(kind, name, text: text, beside: beside, now: cases.now))
    }

    /// Throws if the text names another app's template, because a validation shows the templates that a text names.
    private func requireTemplates(ofText text: String, campaign: String) throws {
        guard caller.topic != nil else { return }
        for name in cases.files.templates(ofText: text, name: campaign) { try requireTemplate(name) }
    }

    /// Returns whether the caller may see a template. A template that no campaign uses belongs to every app, unless a
    /// campaign that cannot be read may use it.
    func seesTemplate(_ name: String) -> Bool {
        guard caller.topic != nil else { return true }
        let topics = cases.files.topics(ofTemplate: name)
        return topics.isEmpty ? !cases.files.hasUnreadableCampaigns : topics.contains(where: caller.sees)
    }

    /// Throws if a segment has no devices of the caller's app, with the same error as for a segment that does not
    /// exist. A count of 0 would reveal that the segment exists.
    func requireSegments(_ names: Set<String>) async throws {
        guard caller.topic != nil else { return }
        let access = SegmentAccess(cases, caller)
        for name in names.sorted() {
            do {
                _ = try await access.segment(name)
            } catch let problem as Problem where problem.status == 404 {
                throw Failure(.invalidData, problem.detail)
            }
        }
    }

    /// Throws if a segment that a campaign's audience or stages name has no devices of the caller's app.
    func requireSegments(of campaign: Campaign) async throws { try await requireSegments(campaign.segmentsNamed) }

    /// Throws if the caller may not start runs and the segment is in the audience of a campaign that starts
    /// automatically.
    func requireChanging(segment name: String) async throws {
        if !caller.role.may(.run) { try await cases.requireStartsNothing(segment: name) }
    }

    /// Returns the template without the other apps' campaigns that use it.
    func visible(_ template: TemplateResult) -> TemplateResult {
        guard caller.topic != nil else { return template }
        var template = template
        template.campaigns = template.campaigns.filter { name in
            caller.sees((try? cases.files.topic(ofCampaign: name)) ?? "")
        }
        return template
    }

    /// Returns the result without the findings in other apps' campaigns.
    func visible(_ result: ValidationResult) -> ValidationResult {
        guard caller.topic != nil else { return result }
        let hidden = cases.files.paths { !caller.sees($0) }
        var result = result
        result.files = result.files.filter { !hidden.contains($0.path) }
        result.problems = result.problems.filter { !hidden.contains($0.path) }
        return result
    }

    func requireTemplate(_ name: String) throws {
        guard seesTemplate(name) else { throw Problem.notFound("no template \"\(name)\"") }
    }

    /// Throws if another app's campaign uses the template, or may use it.
    func requireWritingTemplate(_ name: String) throws {
        guard caller.topic != nil else { return }
        let isUnclear = cases.files.hasUnreadableCampaigns
        if !isUnclear { try requireTemplate(name) }
        guard cases.files.topics(ofTemplate: name).allSatisfy(caller.sees), !isUnclear else {
            throw Problem.forbidden(
                "campaigns of another app use template \"\(name)\", or an unreadable campaign may use it; ask an admin "
                    + "to change it"
            )
        }
    }

    /// Deletes a template that no campaign uses. A caller confined to one app does not learn who uses it.
    func deleteTemplate(_ name: String, _ condition: ManageFiles.Condition?) async throws -> TemplateResult {
        try cases.files.requireEditing()
        try requireWritingTemplate(name)
        do {
            return try await cases.files.deleteTemplate(name, condition, by: caller.actor, now: cases.now)
        } catch FileRefusal.used(let file, _) where caller.topic != nil {
            throw FileRefusal.used(file: file, by: [])
        }
    }

    private static func none(_ campaign: String) -> String { "no campaign \"\(campaign)\"" }
}
