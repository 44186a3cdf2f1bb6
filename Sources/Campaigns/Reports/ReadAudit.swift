package import Model
import Senders
package import Store

/// Reads the audit log.
package struct ReadAudit: Sendable {
    package static let limitMax = 500

    private let store: any AuditLog

    package init(store: any AuditLog) {
        self.store = store
    }

    /// Returns the latest `limit` events, oldest first.
    ///
    /// - Parameters:
    ///   - run: `nil` for the events of the whole store.
    ///   - kind: `nil` for the events of all kinds.
    package func events(
        of run: Run?, kind: EventKind? = nil, since: Timestamp?, limit: Int
    ) async throws -> [StoreEvent] {
        guard let kind else { return try await store.events(run: run?.id, since: since, limit: limit) }
        let filter = EventFilter(run: run?.id, kind: kind.rawValue, since: since)
        return try await store.events(filter, before: nil, limit: limit).events.reversed()
    }

    /// Returns the latest events of a run, oldest first.
    package func results(of run: Run, limit: Int = 100) async throws -> [EventResult] {
        try await events(of: run, since: nil, limit: limit).map(EventResult.init)
    }

    /// Returns a page of the events that match, newest first.
    ///
    /// - Parameters:
    ///   - kind: the name of an ``EventKind``.
    ///   - cursor: the cursor of the previous page; `nil` for the first page.
    package func page(
        run: Int64?, actor: String?, kind: String?, since: Timestamp?, cursor: String?, limit: Int
    ) async throws -> EventPageResult {
        try await page(EventFilter(run: run, actor: actor, kind: kind, since: since), cursor: cursor, limit: limit)
    }

    /// - Parameter cursor: the cursor of the previous page; `nil` for the first page.
    package func page(_ filter: EventFilter, cursor: String?, limit: Int) async throws -> EventPageResult {
        let page = try await store.events(
            filter, before: try PageCursor.position(cursor), limit: PageCursor.limit(limit, max: Self.limitMax))
        return EventPageResult(events: page.events.map(EventResult.init), next: page.next.map(PageCursor.text))
    }
}

/// The stable shape of a page of the audit.
package struct EventPageResult: Codable, Hashable, Sendable {
    /// Newest first.
    package var events: [EventResult]
    /// Absent on the last page.
    package var next: String?

    package init(events: [EventResult], next: String?) {
        self.events = events
        self.next = next
    }
}

/// The stable shape of each event of `audit --json`.
package struct EventResult: Codable, Hashable, Sendable {
    package var at, kind, actor, detail, origin: String
    package var run: Int64?
    package var campaign: String?
    package var uid: Int64?
    package var user: String?
    package var command: String?
    /// The SHA-256 hash of each file, by path.
    package var files: [String: String]

    package init(_ event: StoreEvent) {
        at = event.at.iso8601
        kind = event.kind
        actor = event.actor.name
        detail = event.detail
        origin = event.actor.origin.rawValue
        run = event.run
        campaign = event.campaign
        let account = event.actor.identity
        if account.hasPrefix("os:") {
            uid = event.actor.identityUID
            user = String(account.dropFirst(3))
        }
        command = event.actor.command
        files = event.files
    }
}

extension EventResult {
    /// The actor as a person reads it: a process appears as its host and process id.
    package var actorShown: String {
        let parts = actor.split(separator: ":", omittingEmptySubsequences: false)
        return (4...5).contains(parts.count) && Int32(parts[1]) != nil ? ProcessName.shown(actor) : actor
    }
}
