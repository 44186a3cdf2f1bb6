import CampaignFiles
package import Model
import Store

/// Templates on their own, whether a campaign uses them or not.
extension ManageFiles {
    /// Returns the current text of a file and its ETag; `nil` twice if the file is not text.
    package func current(_ kind: Kind, _ name: String) throws -> (text: String?, etag: String?) {
        Self.text(of: try path(kind, name))
    }

    /// Whether there is a file of this name.
    package func has(_ kind: Kind, _ name: String) -> Bool { isThere(kind, name) }

    /// Returns the notifications of a template's text. The names of the variables stand for their values. Throws if the
    /// text has errors.
    package func notifications(ofTemplate name: String, text: String) throws -> [PreviewResult.Notification] {
        let (source, diagnostics) = TemplateFile.source(text: text, path: try pathOrNew(.template, name))
        guard let template = source?.template, diagnostics.allSatisfy({ $0.severity == .warning }) else {
            throw Failure(.invalidData, diagnostics)
        }
        let campaign = Campaign(name: name, topic: "", pushType: template.likelyPushType, template: name)
        let definition = RunDefinition(
            campaign: campaign, template: template, variables: [:], plannedAt: Timestamp(milliseconds: 0))
        return try PreviewNotifications.all(definition).notifications
    }

    /// Returns the users of a template: campaigns of the folder, and changes of campaigns that wait for release. A
    /// campaign file that cannot be read counts, because it may name the template.
    package func users(ofTemplate name: String) async throws -> [String] {
        var users = YAMLFolder.files(in: configuration.campaigns).compactMap { path -> String? in
            guard let campaign = campaign(ofPath: path) else { return "\(path), which cannot be read" }
            return campaign.templatesNamed.contains(name) ? "campaign \(Self.name(ofPath: path))" : nil
        }
        for change in try await changesToCome() where change.names.map({ $0.templates.contains(name) }) ?? true {
            users.append("a change of campaign \(change.campaign) that waits for release")
        }
        return users
    }

    /// Deletes a template that nothing uses, and records the deletion before it happens. Throws ``FileRefusal`` if the
    /// file stays. The deletion of such a template changes nothing that starts automatically, so it never waits for
    /// release.
    package func deleteTemplate(
        _ name: String, _ condition: Condition?, by actor: Actor, now: Timestamp
    ) async throws -> TemplateResult {
        try requireEditing()
        let path = try path(.template, name)
        guard Self.text(of: path).text != nil else { throw FileRefusal.noText(file: path) }
        let expected = try Self.expected(condition, at: path)
        let users = try await users(ofTemplate: name)
        guard users.isEmpty else { throw FileRefusal.used(file: path, by: users) }
        let waiting = try await store.pendingChanges().first { $0.kind == Kind.template.rawValue && $0.name == name }
        guard waiting == nil else {
            throw FileRefusal.used(file: path, by: ["a change of the template itself that waits for release"])
        }
        let result = try template(name).template
        guard case .file(let hash) = expected else { throw Self.refusal(.nothing, expected, path) }
        try await store.recordEvent(
            kind: .fileDeleted, run: nil, actor: actor, detail: "template \(name)",
            files: [FileHash.absolute(path): hash], now: now)
        if let found = try AtomicFile.remove(path, expecting: expected) { throw Self.refusal(found, expected, path) }
        return result
    }
}
