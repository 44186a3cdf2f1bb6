import CampaignFiles
package import Model
import Platform
package import Store

/// Changes that wait for release. A campaign that starts automatically sends what its files say. An account that may
/// not start runs therefore cannot change these files directly. Its text waits until an account that may start runs
/// releases it.
extension ManageFiles {
    /// The maximum number of changes that may wait. Each has at most ``bytesMax`` bytes.
    package static let changesMax = 100

    /// Returns whether a text would change what starts automatically. For a campaign file, this is so if the current
    /// or the new campaign starts automatically. For a template, it is so if a campaign that uses the template does.
    /// A campaign that waits for release counts, because its releaser has seen the template as it is. A campaign
    /// file that cannot be read counts as well.
    package func startsAutomatically(_ kind: Kind, _ name: String, text: String) async throws -> Bool {
        switch kind {
        case .campaign:
            let texts = [campaign(ofText: text, name: name)] + (isThere(kind, name) ? [campaign(ofFile: name)] : [])
            return texts.contains { $0?.startsAutomatically ?? true }
        case .template:
            return try await campaignsToCome().contains { campaign in
                campaign.map { $0.startsAutomatically && $0.templates.contains(name) } ?? true
            }
        }
    }

    /// Returns the campaigns of the folder and those that wait for release; `nil` for each in which nothing could be
    /// understood.
    private func campaignsToCome() async throws -> [CampaignNames?] {
        try await campaigns.map { $0.map(CampaignNames.init) } + changesToCome().map(\.names)
    }

    /// Returns the changed campaigns that wait for release, with `nil` names for each in which nothing could be
    /// understood.
    func changesToCome() async throws -> [(campaign: String, names: CampaignNames?)] {
        let changes = try await store.pendingChanges().filter { $0.kind == Kind.campaign.rawValue }
        waiting.keep(changes.map(\.hash))
        var found: [(campaign: String, names: CampaignNames?)] = []
        for change in changes {
            guard let names = try await names(ofWaiting: change.id, change.name, hash: change.hash) else { continue }
            found.append((change.name, names))
        }
        return found
    }

    /// Returns what the waiting text of a campaign file names. The inner optional is `nil` if nothing in the text could
    /// be understood. The outer optional is `nil` if the text no longer waits.
    package func names(ofWaiting id: Int64, _ name: String, hash: String) async throws -> CampaignNames?? {
        try await waiting.names(hash: hash) {
            try await store.pendingChange(id).map { change in
                campaign(ofText: change.text, name: name).map(CampaignNames.init)
            }
        }
    }

    /// Throws if the segment may belong to the audience of a campaign that starts automatically, or if it limits the
    /// devices of tests (`test_devices`).
    ///
    /// - Parameter segments: all segments of the store.
    package func requireStartsNothing(segment name: String, _ segments: [SegmentSummary]) async throws {
        var open = Set([configuration.testDevices].compactMap(\.self))
        for campaign in try await campaignsToCome() {
            guard let campaign else { throw Self.audienceRefusal(name) }
            guard campaign.startsAutomatically else { continue }
            if campaign.readsSegmentsBySQL { throw Self.audienceRefusal(name) }
            open.formUnion(campaign.segments)
        }
        var known = open
        while let next = open.popFirst() {
            guard next != name else { throw Self.audienceRefusal(name) }
            // Take all segments with this name, in any Unicode normalization form.
            let named = segments.lazy.filter { $0.name == next }.reduce(into: Set<String>()) { named, segment in
                guard case .dynamic(let source) = segment.kind else { return }
                named.formUnion((try? ExpressionText.parse(source, named: "expression"))?.segments ?? [])
            }
            open.formUnion(named.subtracting(known))
            known.formUnion(named)
        }
    }

    /// Returns the users of a segment: campaigns of the folder, changes of campaigns that wait for release, and
    /// `test_devices`. A campaign file that cannot be read counts, because it may need the segment.
    package func users(ofSegment name: String) async throws -> [String] {
        try await users(ofSegments: [name])[name, default: []]
    }

    /// Returns the same for several segments, by their names. Reads each file once.
    func users(ofSegments names: [String]) async throws -> [String: [String]] {
        let paths = YAMLFolder.files(in: configuration.campaigns)
        let campaigns = paths.map { (path: $0, campaign: campaign(ofPath: $0)) }
        let changes = try await changesToCome()
        var users: [String: [String]] = [:]
        for name in names {
            users[name] = campaigns.compactMap { path, campaign in
                guard let campaign else { return "\(path), which cannot be read" }
                return campaign.uses(segment: name) ? "campaign \(campaign.name)" : nil
            }
            for change in changes
            where change.names.map({ $0.segments.contains(name) || $0.readsSegmentsBySQL }) ?? true {
                users[name, default: []].append("a change of campaign \(change.campaign) that waits for release")
            }
            guard configuration.testDevices == name else { continue }
            users[name, default: []].append("test_devices in the configuration")
        }
        return users
    }

    /// Returns the refusal, which does not name the campaign: the campaign may belong to another app.
    private static func audienceRefusal(_ segment: String) -> Failure {
        Failure(
            .refused,
            "segment \"\(segment)\" is, or may be, in the audience of a campaign that starts automatically, or in "
                + "test_devices; ask an account that may start runs (sender, admin) to change it")
    }

    /// Keeps a text until it is released. An author replaces their own waiting text by saving again. To replace the
    /// waiting text of another author, the caller must give that text's ETag. Saving the current text of the file
    /// withdraws the waiting text.
    func hold(
        _ kind: Kind, _ name: String, text: String, _ condition: Condition?, beside: [String: String] = [:],
        by actor: Actor, now: Timestamp
    ) async throws -> WrittenFileResult {
        let path = try pathOrNew(kind, name)
        let waiting = try await store.pendingChanges().first { $0.kind == kind.rawValue && $0.name == name }
        let base: String?
        if let waiting, condition == .unchanged(etag: waiting.hash) {
            base = waiting.base
        } else {
            let seen = try Self.expected(condition, at: path)
            if let waiting, waiting.author.identity != actor.identity {
                throw FileRefusal.changedMeanwhile(file: path, etag: waiting.hash)
            }
            if case .file(let hash) = seen { base = hash } else { base = nil }
        }
        let hash = Digest.sha256Hex(Array(text.utf8))
        if hash == base {
            if let waiting {
                let summary = "\(kind.rawValue) \(name), withdrawn"
                _ = try await store.endChange(waiting.id, .changeRejected, by: actor, detail: summary, now: now)
            }
            return WrittenFileResult(name: name, path: path, etag: hash, isNew: false, warnings: [])
        }
        let (errors, warnings) = try await errors(of: text, kind, name, path: path, beside: beside, now: now)
        guard errors.isEmpty else { throw FileRefusal.wrong(errors) }
        let change = PendingChange(
            kind: kind.rawValue, name: name, text: text, hash: hash, base: base, author: actor, askedAt: now)
        let result = try await store.holdChange(
            change, insteadOf: waiting?.id, most: Self.changesMax, detail: change.summary)
        switch result {
        case .held(let held):
            return WrittenFileResult(
                name: name, path: path, etag: held.hash, isNew: base == nil, warnings: warnings.map { .init($0) },
                held: held.id)
        case .changedMeanwhile: throw FileRefusal.changedMeanwhile(file: path, etag: waiting?.hash ?? "")
        case .tooMany:
            throw Failure(
                .refused,
                "\(Self.changesMax) changes already wait for release; release or reject some (`fanfare changes`)"
            )
        }
    }

    /// Lists the waiting changes, oldest first.
    package func changes() async throws -> [ChangeResult] {
        try await store.pendingChanges().map { try ChangeResult($0, self) }
    }

    package func change(_ id: Int64) async throws -> ChangeDetailResult {
        let change = try await pending(id)
        let live = try? path(kind(of: change), change.name)
        return ChangeDetailResult(
            change: try ChangeResult(change, self), text: change.text, current: live.flatMap { Self.text(of: $0).text })
    }

    /// Replaces a file's text with the waiting text, if the file has not changed since the author saw it.
    package func release(_ id: Int64, by actor: Actor, now: Timestamp) async throws -> ChangeResult {
        try requireEditing()
        let change = try await pending(id)
        let result = try ChangeResult(change, self)
        let (kind, path) = (try kind(of: change), result.path)
        // An interrupted release may have written the file already.
        if try AtomicFile.entry(at: path) != .file(hash: change.hash) {
            guard !result.isOutdated else { throw Self.outdated(change, path) }
            let errors = try await errors(of: change.text, kind, change.name, path: path, now: now).errors
            guard errors.isEmpty else { throw FileRefusal.wrong(errors) }
            // Record the author of the text, so that the author cannot approve its plan.
            try await store.recordEvent(
                kind: .fileWritten, run: nil, actor: change.author,
                detail: "\(change.summary), released by \(actor.name)",
                files: [FileHash.absolute(path): change.hash], now: now)
            let expected: AtomicFile.Entry = change.base.map { .file(hash: $0) } ?? .nothing
            guard try AtomicFile.write(change.text, to: path, expecting: expected) == nil else {
                throw Self.outdated(change, path)
            }
        }
        try await end(change, .changeReleased, by: actor, detail: change.summary, now: now)
        return result
    }

    /// Removes a waiting text, and records the rejection.
    package func reject(_ id: Int64, reason: String?, by actor: Actor, now: Timestamp) async throws -> ChangeResult {
        let reason: String? = try RecordedReason.checked(reason)
        let change = try await pending(id)
        let result = try ChangeResult(change, self)
        let summary = reason.map { ": \($0)" } ?? ""
        try await end(change, .changeRejected, by: actor, detail: change.summary + summary, now: now)
        return result
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
}

extension Campaign {
    /// Whether a schedule or a feed starts the campaign.
    package var startsAutomatically: Bool { schedule != nil || feed != nil }

    /// The segments that the campaign's audience and stages name.
    package var segmentsNamed: Set<String> {
        (stages ?? []).reduce(into: audience.expression.segments) { names, stage in
            names.formUnion(stage.seeds?.segments ?? [])
        }
    }
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

    init(_ change: PendingChange, _ files: ManageFiles) throws {
        id = change.id
        kind = change.kind
        name = change.name
        path = try files.pathOrNew(files.kind(of: change), change.name)
        author = change.author.name
        askedAt = change.askedAt.iso8601
        etag = change.hash
        isNew = change.base == nil
        let expected: AtomicFile.Entry = change.base.map { .file(hash: $0) } ?? .nothing
        let found = try AtomicFile.entry(at: path)
        isOutdated = found != expected && found != .file(hash: change.hash)
    }

    /// The change in one line, for a person to read.
    package var summary: String {
        "change \(id) of \(kind) \(name), by \(author) at \(askedAt), waits for release by an account that may start runs"
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
