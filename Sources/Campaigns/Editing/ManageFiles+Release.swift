import CampaignFiles
package import Model
import Platform
import Store

/// The holding of texts until they are released. Texts that belong together are released together: a campaign with a
/// new audience would otherwise send an old text.
extension ManageFiles {
    /// A text that may be held, with what it is to replace.
    private struct Holding {
        var change: PendingChange
        var path: String
        /// The change of the same file that its author has seen.
        var waiting: PendingChange?
        var warnings: [Diagnostic]

        /// Whether the text is that of the file, so that nothing is left to release.
        var isWithdrawn: Bool { change.hash == change.base }
    }

    /// Keeps texts until they are released. An author replaces their own waiting text by saving again. To replace the
    /// waiting text of another author, the caller must give that text's ETag. Saving the current text of the file
    /// withdraws the waiting text.
    ///
    /// - Parameter drafts: all texts by path, which are checked together.
    func hold(
        _ texts: [NewText], _ drafts: [String: String], by actor: Actor, now: Timestamp
    ) async throws -> [WrittenFileResult] {
        let waiting = try await store.pendingChanges()
        var holdings: [Holding] = []
        for text in texts {
            let known = waiting.first { $0.kind == text.kind.rawValue && $0.name == text.name }
            holdings.append(try await holding(text, insteadOf: known, drafts, by: actor, now: now))
        }
        var results: [WrittenFileResult] = []
        for holding in holdings { results.append(try await hold(holding, by: actor, now: now)) }
        return results
    }

    private func holding(
        _ text: NewText, insteadOf waiting: PendingChange?, _ drafts: [String: String], by actor: Actor, now: Timestamp
    ) async throws -> Holding {
        let path = try pathOrNew(text.kind, text.name)
        let base: String?
        if let waiting, text.condition == .unchanged(etag: waiting.hash) {
            base = waiting.base
        } else {
            let seen = try Self.expected(text.condition, at: path)
            if let waiting, waiting.author.identity != actor.identity {
                throw FileRefusal.changedMeanwhile(file: path, etag: waiting.hash)
            }
            if case .file(let hash) = seen { base = hash } else { base = nil }
        }
        let change = PendingChange(
            kind: text.kind.rawValue, name: text.name, text: text.text,
            hash: Digest.sha256Hex(Array(text.text.utf8)), base: base, author: actor, askedAt: now)
        var holding = Holding(change: change, path: path, waiting: waiting, warnings: [])
        guard !holding.isWithdrawn else { return holding }
        let found = try await errors(of: text, path: path, beside: drafts, now: now)
        guard found.errors.isEmpty else { throw FileRefusal.wrong(found.errors) }
        holding.warnings = found.warnings
        return holding
    }

    private func hold(_ holding: Holding, by actor: Actor, now: Timestamp) async throws -> WrittenFileResult {
        let change = holding.change
        if holding.isWithdrawn {
            if let waiting = holding.waiting {
                let summary = "\(change.kind) \(change.name), withdrawn"
                _ = try await store.endChange(waiting.id, .changeRejected, by: actor, detail: summary, now: now)
            }
            return WrittenFileResult(
                name: change.name, path: holding.path, etag: change.hash, isNew: false, warnings: [])
        }
        let result = try await store.holdChange(
            change, insteadOf: holding.waiting?.id, most: Self.changesMax, detail: change.summary)
        switch result {
        case .held(let held):
            return WrittenFileResult(
                name: change.name, path: holding.path, etag: held.hash, isNew: change.base == nil,
                warnings: holding.warnings.map { .init($0) }, held: held.id)
        case .changedMeanwhile:
            throw FileRefusal.changedMeanwhile(file: holding.path, etag: holding.waiting?.hash ?? "")
        case .tooMany:
            throw Failure(
                .refused,
                "\(Self.changesMax) changes already wait for release; release or reject some (`fanfare changes`)"
            )
        }
    }

    /// Lists the waiting changes, oldest first.
    package func changes() async throws -> [ChangeResult] {
        let waiting = try await store.pendingChanges()
        let names = try await changesToCome()
        return try waiting.map { try ChangeResult($0, with: Self.together($0, waiting, names), self) }
    }

    package func change(_ id: Int64) async throws -> ChangeDetailResult {
        let change = try await pending(id)
        let live = try? path(kind(of: change), change.name)
        return ChangeDetailResult(
            change: try ChangeResult(change, with: try await together(change), self), text: change.text,
            current: live.flatMap { Self.text(of: $0).text })
    }

    /// Replaces a file's text with the waiting text, and with it the texts that belong to it, if no file has changed
    /// since its author saw it. Otherwise replaces none.
    package func release(_ id: Int64, by actor: Actor, now: Timestamp) async throws -> ChangeResult {
        try requireEditing()
        let asked = try await pending(id)
        var changes = [asked]
        for other in try await together(asked) { changes.append(try await pending(other.id)) }
        let result = try ChangeResult(asked, with: Array(changes.dropFirst()), self)
        var open: [(change: PendingChange, text: NewText, path: String)] = []
        var drafts: [String: String] = [:]
        for change in changes {
            let text = NewText(try kind(of: change), change.name, text: change.text, nil)
            let path = try pathOrNew(text.kind, text.name)
            drafts[path] = change.text
            let entry = try AtomicFile.entry(at: path)
            // An interrupted release has written the file already.
            guard entry != .file(hash: change.hash) else { continue }
            guard entry == change.expected else { throw Self.outdated(change, path) }
            open.append((change, text, path))
        }
        for (_, text, path) in open {
            let errors = try await errors(of: text, path: path, beside: drafts, now: now).errors
            guard errors.isEmpty else { throw FileRefusal.wrong(errors) }
        }
        for (change, _, path) in open {
            // Record the author of the text, so that the author cannot approve its plan.
            try await store.recordEvent(
                kind: .fileWritten, run: nil, actor: change.author,
                detail: "\(change.summary), released by \(actor.name)",
                files: [FileHash.absolute(path): change.hash], now: now)
        }
        let files = open.map { AtomicFile.Replacement(path: $0.path, text: $0.text.text, expected: $0.change.expected) }
        if let other = try AtomicFile.write(Self.templatesFirst(files, open.map(\.text.kind))) {
            throw Self.outdated(open.first { $0.path == other.path }?.change ?? asked, other.path)
        }
        for change in changes { try await end(change, .changeReleased, by: actor, detail: change.summary, now: now) }
        return result
    }

    /// Removes a waiting text and the texts that its author wrote for it, and records the rejection.
    package func reject(_ id: Int64, reason: String?, by actor: Actor, now: Timestamp) async throws -> ChangeResult {
        let reason: String? = try RecordedReason.checked(reason)
        let change = try await pending(id)
        let others = try await together(change).filter { $0.author.identity == change.author.identity }
        let result = try ChangeResult(change, with: others, self)
        let summary = reason.map { ": \($0)" } ?? ""
        for change in [change] + others {
            try await end(change, .changeRejected, by: actor, detail: change.summary + summary, now: now)
        }
        return result
    }

    /// Returns the other changes that are released with a change: the templates of a campaign, and the campaigns of the
    /// same author that name a template, with their templates.
    private func together(_ change: PendingChange) async throws -> [PendingChange] {
        Self.together(change, try await store.pendingChanges(), try await changesToCome())
    }

    private static func together(
        _ change: PendingChange, _ waiting: [PendingChange], _ names: [ChangeToCome]
    ) -> [PendingChange] {
        func templates(of campaign: String) -> Set<String> {
            names.first { $0.campaign == campaign }?.names?.templates ?? []
        }
        let campaigns =
            change.kind == Kind.campaign.rawValue
            ? [change]
            : waiting.filter { other in
                other.kind == Kind.campaign.rawValue && other.author.identity == change.author.identity
                    && templates(of: other.name).contains(change.name)
            }
        let used = campaigns.reduce(into: Set<String>()) { $0.formUnion(templates(of: $1.name)) }
        let ids = Set(campaigns.map(\.id))
        return waiting.filter { other in
            other.id != change.id
                && (ids.contains(other.id) || other.kind == Kind.template.rawValue && used.contains(other.name))
        }
    }

    private func end(
        _ change: PendingChange, _ kind: EventKind, by actor: Actor, detail: String, now: Timestamp
    ) async throws {
        let detail = "\(detail), by \(change.author.name)"
        guard try await store.endChange(change.id, kind, by: actor, detail: detail, now: now) else {
            throw Self.none(change.id)
        }
    }

    private func pending(_ id: Int64) async throws -> PendingChange {
        guard let change = try await store.pendingChange(id) else { throw Self.none(id) }
        return change
    }

    fileprivate func kind(of change: PendingChange) throws -> Kind {
        guard let kind = Kind(rawValue: change.kind) else { throw Self.none(change.id) }
        return kind
    }

    private static func none(_ id: Int64) -> Failure {
        Failure(
            .notFound,
            "no change \(id) waits: it was edited, released or rejected; `fanfare changes` lists waiting changes")
    }

    private static func outdated(_ change: PendingChange, _ path: String) -> Failure {
        Failure(
            .refused,
            "\(path) has changed since \(change.author.name) wrote change \(change.id); reject it, or have its author save the "
                + "text again")
    }
}

extension PendingChange {
    fileprivate var summary: String { "\(kind) \(name), \(text.utf8.count.grouped) bytes" }

    /// The entry that the change's author saw at its path.
    fileprivate var expected: AtomicFile.Entry { base.map { .file(hash: $0) } ?? .nothing }
}

/// The stable shape of a change that waits for release.
package struct ChangeResult: Codable, Hashable, Sendable {
    package var id: Int64
    /// `campaign` or `template`.
    package var kind: String
    package var name: String
    package var path: String
    package var author: String
    package var askedAt: String
    /// SHA-256 of the waiting text.
    package var etag: String
    package var isNew: Bool
    /// Whether the file has changed since the author saw it, so that the change cannot be released.
    package var isOutdated: Bool

    /// The numbers of the changes that are released with this one; absent if there is none.
    package var together: [Int64]?

    fileprivate init(_ change: PendingChange, with others: [PendingChange], _ files: ManageFiles) throws {
        id = change.id
        kind = change.kind
        name = change.name
        path = try files.pathOrNew(files.kind(of: change), change.name)
        author = change.author.name
        askedAt = change.askedAt.iso8601
        etag = change.hash
        isNew = change.base == nil
        let found = try AtomicFile.entry(at: path)
        isOutdated = found != change.expected && found != .file(hash: change.hash)
        together = others.isEmpty ? nil : others.map(\.id)
    }

    /// The change in one line, for a person to read.
    package var summary: String {
        "change \(id) of \(kind) \(name), by \(author) at \(askedAt), waits for release by an account that may start runs"
            + (together.map { ", together with \($0.changeNumbers)" } ?? "")
            + (isOutdated ? "; the file has changed since" : "")
    }
}

/// The stable shape of one change with its text.
package struct ChangeDetailResult: Codable, Hashable, Sendable {
    package var change: ChangeResult
    package var text: String
    /// The file's text now; absent if there is none.
    package var current: String?
}

extension [Int64] {
    /// Such as `change 3` or `changes 3 and 4`.
    package var changeNumbers: String {
        count == 1
            ? "change \(self[0])"
            : "changes \(dropLast().map(String.init).joined(separator: ", ")) and \(self[count - 1])"
    }
}
