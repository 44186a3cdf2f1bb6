import Campaigns
import Model

/// The rules of changing a file in its editor, for the pages of campaigns and of templates.
struct FileEditing: Sendable {
    typealias Draft = CampaignPageBuilder.Draft

    /// The text that a draft must not replace.
    private struct Theirs {
        var text: String?
        var etag: String
        /// The author of a text that waits for release. `nil` if the text is in the file.
        var author: String?
    }

    let cases: UseCases
    let caller: Caller

    /// Returns the reason why the caller may not change a file here, or `nil` if the caller may.
    func reason(_ kind: ManageFiles.Kind, _ file: String) throws -> String? {
        guard cases.configuration().http.editing else {
            return "Files cannot be edited here: set http.editing in the configuration, or edit the file on disk."
        }
        guard caller.role.may(.edit) else {
            return "\(caller.name) is \(caller.role.rawValue): only authors can change files."
        }
        guard kind == .template else { return nil }
        do {
            try CampaignAccess(cases, caller).requireWritingTemplate(file)
            return nil
        } catch {
            return Problem(error, for: caller).detail
        }
    }

    /// Saves a draft, or keeps it for release.
    func save(_ draft: Draft) async throws -> WrittenFileResult { try await save([draft])[0] }

    /// Saves drafts together, or keeps them for release: all or none.
    func save(_ drafts: [Draft]) async throws -> [WrittenFileResult] {
        try cases.files.requireEditing()
        for draft in drafts {
            try CampaignAccess(cases, caller).requireWriting(draft.kind, draft.file, text: draft.text)
        }
        return try await cases.files.write(
            drafts.map { .init($0.kind, $0.file, text: $0.text, $0.condition) }, mayStart: caller.role.may(.run),
            by: caller.actor, now: cases.now)
    }

    /// Returns the caller's own text that waits for release, which their editor shows in place of the file's.
    func ownText(of change: ChangeResult) async throws -> Draft? {
        guard change.author == caller.actor.name, !caller.role.may(.run), caller.role.may(.edit),
            let kind = ManageFiles.Kind(rawValue: change.kind)
        else { return nil }
        let text = try await cases.change(change.id, for: caller).text
        return Draft(kind: kind, file: change.name, text: text, etag: change.etag)
    }

    /// Shows in the editor of a draft why the draft was not saved. If another user changed the file, the editor shows
    /// both texts. Its form keeps the tag of the text that was opened, so only the explicit button replaces the other
    /// text.
    func show(_ refusal: FileRefusal, of draft: Draft, in editor: inout FileEditor) async throws {
        if case .changedMeanwhile(_, let etag) = refusal {
            let theirs = try await theirs(insteadOf: draft, etag: etag)
            let waiting = theirs.author.map { author in
                "\(PersonName.shown(author))'s text waits for release and was not overwritten: compare the two texts, and save yours "
                    + "again to replace theirs"
            }
            editor.conflict = .init(
                waiting ?? refusal.description, yours: draft.text, theirs: theirs.text, etag: theirs.etag)
        } else if case .wrong(let diagnostics) = refusal {
            editor.refuse(diagnostics)
        } else {
            editor.refusal = refusal.description.messageLines
        }
    }

    /// - Parameter etag: the tag of the text that was in the way.
    private func theirs(insteadOf draft: Draft, etag: String?) async throws -> Theirs {
        for change in try await cases.changes(for: caller)
        where change.kind == draft.kind.rawValue && change.name == draft.file && change.etag == etag {
            let text = try await cases.change(change.id, for: caller).text
            return Theirs(text: text, etag: change.etag, author: change.author)
        }
        // The file may have been deleted.
        let current = try? cases.files.current(draft.kind, draft.file)
        return Theirs(text: current?.text, etag: current?.etag ?? "", author: nil)
    }
}
