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
        let held = try await hold(holdings, by: actor)
        return zip(holdings, held).map { holding, held in
            WrittenFileResult(
                name: holding.change.name, path: holding.path, etag: holding.change.hash,
                isNew: held != nil && holding.change.base == nil, warnings: holding.warnings.map { .init($0) },
                held: held?.id)
        }
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

    /// Stores all texts of a save, or none. Returns the waiting changes, with `nil` for each withdrawn text.
    private func hold(_ holdings: [Holding], by actor: Actor) async throws -> [PendingChange?] {
        let texts = holdings.map { holding in
            TextToHold(
                change: holding.change, known: holding.waiting?.id,
                detail: holding.isWithdrawn
                    ? "\(holding.change.kind) \(holding.change.name), withdrawn" : holding.change.summary,
                files: [FileHash.absolute(holding.path): holding.change.hash],
                withdraws: holding.isWithdrawn)
        }
        switch try await store.holdChanges(texts, most: Self.changesMax) {
        case .held(let held): return held
        case .changedMeanwhile(let index):
            let holding = holdings[index]
            throw FileRefusal.changedMeanwhile(file: holding.path, etag: holding.waiting?.hash ?? "")
        case .tooMany:
            throw Failure(
                .refused,
                "\(Self.changesMax) changes may wait for release, and this save would exceed that; release or reject some "
                    + "(`fanfare changes`)")
        }
    }

    /// Lists the waiting changes, oldest first.
    package func changes() async throws -> [ChangeResult] {
        // The lists of a user who may not write to the folder show the files as they are.
        try? finishSaves()
        let groups = try await releaseGroups()
        return try groups.waiting.map { try ChangeResult($0, with: groups.others(of: $0.id), self) }
    }

    package func change(_ id: Int64) async throws -> ChangeDetailResult {
        let change = try await pending(id)
        let others = try await releaseGroups().others(of: id)
        return detail(try ChangeResult(change, with: others, self), text: change.text, texts: ([change] + others).texts)
    }

    /// Returns a change with the others that a rejection of it ends: those of its author that belong to it.
    package func changeToReject(_ id: Int64) async throws -> ChangeDetailResult {
        let change = try await pending(id)
        let others = try await releaseGroups().others(of: id).of(change.author)
        return detail(try ChangeResult(change, with: others, self), text: change.text, texts: ([change] + others).texts)
    }

    /// Returns a listed change with its text; `nil` if it no longer waits.
    ///
    /// - Parameter listed: the list that the change is from.
    package func detail(_ change: ChangeResult, of listed: [ChangeResult]) async throws -> ChangeDetailResult? {
        guard let text = try await store.pendingChange(change.id)?.text else { return nil }
        let others = Set(change.together ?? [])
        let texts = listed.filter { $0.id == change.id || others.contains($0.id) }
        return detail(change, text: text, texts: texts.map { ChangeText(id: $0.id, etag: $0.etag) })
    }

    private func detail(_ change: ChangeResult, text: String, texts: [ChangeText]) -> ChangeDetailResult {
        let live = Kind(rawValue: change.kind).flatMap { try? path($0, change.name) }
        return ChangeDetailResult(
            change: change, text: text, current: live.flatMap { Self.text(of: $0).text },
            texts: texts.sorted { $0.id < $1.id })
    }

    /// Replaces a file's text with the waiting text, and with it the texts that belong to it, if no file has changed
    /// since its author saw it. Otherwise replaces none.
    ///
    /// - Parameter seen: the texts that the releaser has seen. The release writes exactly these. `nil` releases only a
    ///   change to which no other belongs.
    package func release(
        _ id: Int64, seen: [ChangeText]?, by actor: Actor, now: Timestamp
    ) async throws -> ChangeResult {
        try requireEditing()
        try finishSaves()
        let asked = try await pending(id)
        let others = try await releaseGroups().others(of: id)
        try Self.requireSeen(asked, others, seen)
        var changes = [asked]
        for other in others { changes.append(try await pending(other.id)) }
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
            // Record the authors of the text, so that they cannot approve its plan.
            for author in try await earlierAuthors(of: change, path) + [change.author] {
                let isLatest = author.identity == change.author.identity
                try await store.recordEvent(
                    kind: .fileWritten, run: nil, actor: author,
                    detail: "\(change.summary), \(isLatest ? "" : "based on this author's text, ")released by "
                        + actor.name,
                    files: [FileHash.absolute(path): change.hash], now: now)
            }
        }
        let files = open.map { AtomicFile.Replacement(path: $0.path, text: $0.text.text, expected: $0.change.expected) }
        let inOrder = Self.templatesFirst(files, open.map(\.text.kind))
        let writers = Dictionary(open.map { ($0.path, $0.change) }) { $1 }
        try await end(changes, .changeReleased, by: actor, now: now) { [folders] in
            // A repeated call finds the texts that the first one has written.
            let left = try inOrder.filter {
                try AtomicFile.entry(at: $0.path) != .file(hash: Digest.sha256Hex(Array($0.text.utf8)))
            }
            if let other = try AtomicFile.write(left, in: folders) {
                throw Self.outdated(writers[other.path] ?? asked, other.path)
            }
        }
        return result
    }

    /// Returns the other authors whose waiting texts of the same file this change has replaced, each once.
    ///
    /// Each held text is an event. Texts before the latest release or rejection are not part of this one.
    private func earlierAuthors(of change: PendingChange, _ path: String) async throws -> [Actor] {
        var ended: Int64 = 0
        for kind in [EventKind.changeReleased, .changeRejected] {
            ended = try await events(kind, of: change, path, after: ended, atMost: 1).first?.id ?? ended
        }
        var known: Set = [change.author.identity]
        return try await events(.changeHeld, of: change, path, after: ended, atMost: .max).map(\.actor)
            .filter { known.insert($0.identity).inserted }
    }

    /// Returns events about the file of a change, newest first.
    private func events(
        _ kind: EventKind, of change: PendingChange, _ path: String, after id: Int64, atMost count: Int
    ) async throws -> [StoreEvent] {
        let path = FileHash.absolute(path)
        var found: [StoreEvent] = []
        var cursor: Int64?
        repeat {
            let page = try await store.events(EventFilter(kind: kind.rawValue), before: cursor, limit: 1000)
            for event in page.events {
                guard event.id > id, found.count < count else { return found }
                // Earlier versions recorded no path.
                let isOwn = event.files.isEmpty && event.detail.hasPrefix("\(change.kind) \(change.name), ")
                if isOwn || event.files[path] != nil { found.append(event) }
            }
            cursor = page.next
        } while cursor != nil
        return found
    }

    /// Removes a waiting text and the texts of its author that belong to it, and records the rejection.
    ///
    /// - Parameter seen: see ``release(_:seen:by:now:)``. Texts of other authors need not be among them, because they
    ///   keep waiting.
    package func reject(
        _ id: Int64, seen: [ChangeText]?, reason: String?, by actor: Actor, now: Timestamp
    ) async throws -> ChangeResult {
        let reason: String? = try RecordedReason.checked(reason)
        let change = try await pending(id)
        let all = try await releaseGroups().others(of: id)
        let others = all.of(change.author)
        let staying = Set(all.map(\.id)).subtracting(others.map(\.id))
        try Self.requireSeen(change, others, seen?.filter { !staying.contains($0.id) })
        let result = try ChangeResult(change, with: others, self)
        let changes = [change] + others
        try await end(changes, .changeRejected, reason: reason, by: actor, now: now) { try requireUnwritten(changes) }
        return result
    }

    /// Refuses the rejection of texts that their files have already. A release was interrupted after it had replaced
    /// the files, or a person wrote the text into the file.
    private func requireUnwritten(_ changes: [PendingChange]) throws {
        let found = try changes.map { try ChangeResult($0, with: [], self) }
        guard let first = found.first(where: { $0.isWritten == true }) else { return }
        throw Failure(
            .refused,
            "\(changes.map(\.id).changeNumbers) \(changes.count == 1 ? "was" : "were") not rejected: "
                + "\(first.path) has the text of change \(first.id) already, from an interrupted release or from a "
                + "person who wrote the file; release \(changes.count == 1 ? "the change" : "the changes"), and then "
                + "save the earlier text again")
    }

    /// Throws if the texts that belong together are not exactly those that the caller has seen.
    private static func requireSeen(
        _ change: PendingChange, _ others: [PendingChange], _ seen: [ChangeText]?
    ) throws {
        guard let seen else {
            guard others.isEmpty else {
                throw Failure(
                    .refused,
                    "\(others.map(\.id).changeNumbers) \(others.count == 1 ? "belongs" : "belong") to change \(change.id), and "
                        + "the request does not name them; read the texts, and name all of them in `seen`")
            }
            return
        }
        let now = Dictionary(([change] + others).map { ($0.id, $0.hash) }) { $1 }
        let known = Dictionary(seen.map { ($0.id, $0.etag) }) { $1 }
        let faults = Set(now.keys).union(known.keys).sorted().compactMap { id -> String? in
            guard now[id] != known[id] else { return nil }
            if now[id] == nil { return "change \(id) no longer belongs to it" }
            return known[id] == nil ? "change \(id) now belongs to it" : "change \(id) has another text"
        }
        guard faults.isEmpty else {
            throw Failure(
                .refused,
                "the changes have changed since you looked at change \(change.id): \(faults.joined(separator: "; ")); look "
                    + "again (`fanfare changes`)")
        }
    }

    /// Ends changes, all or none, and records each end. Throws if one of them no longer waits.
    ///
    /// - Parameter act: writes or checks the files while no other release, rejection or save can end the changes.
    private func end(
        _ changes: [PendingChange], _ kind: EventKind, reason: String? = nil, by actor: Actor, now: Timestamp,
        _ act: @escaping @Sendable () throws -> Void
    ) async throws {
        let why = reason.map { ": \($0)" } ?? ""
        let ends = try changes.map { change in
            ChangeToEnd(
                change.id, detail: "\(change.summary)\(why), by \(change.author.name)",
                files: [FileHash.absolute(try pathOrNew(self.kind(of: change), change.name)): change.hash])
        }
        let gone = try await store.endChanges(ends, kind, by: actor, now: now, act)
        if let gone { throw Self.none(gone) }
    }

    func pending(_ id: Int64) async throws -> PendingChange {
        guard let change = try await store.pendingChange(id) else { throw Self.none(id) }
        return change
    }

    func kind(of change: PendingChange) throws -> Kind {
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

extension [PendingChange] {
    /// The changes of an author.
    fileprivate func of(_ author: Actor) -> [PendingChange] { filter { $0.author.identity == author.identity } }
}

extension PendingChange {
    var summary: String { "\(kind) \(name), \(text.utf8.count.grouped) bytes" }

    /// The entry that the change's author saw at its path.
    var expected: AtomicFile.Entry { base.map { .file(hash: $0) } ?? .nothing }
}
