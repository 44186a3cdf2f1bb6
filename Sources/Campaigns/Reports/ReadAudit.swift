package import Model
package import Store

/// Reads who did what, when.
package struct ReadAudit: Sendable {
    private let store: any RunLog

    package init(store: any RunLog) {
        self.store = store
    }

    /// The latest `limit` events, oldest first.
    ///
    /// - Parameter run: nil: of everything.
    package func events(of run: Run?, since: Timestamp?, limit: Int) async throws -> [StoreEvent] {
        try await store.events(run: run?.id, since: since, limit: limit)
    }

    /// The latest ones of a run, oldest first.
    package func results(of run: Run, limit: Int = 100) async throws -> [EventResult] {
        try await events(of: run, since: nil, limit: limit).map(EventResult.init)
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
    /// SHA-256 by path.
    package var files: [String: String]

    package init(_ event: StoreEvent) {
        at = event.at.iso8601
        kind = event.kind
        actor = event.actor.name
        detail = event.detail
        origin = event.actor.origin.rawValue
        run = event.run
        campaign = event.campaign
        if case .account(let uid, let user) = event.actor.authentication {
            self.uid = uid
            self.user = user
        }
        command = event.actor.command
        files = event.files
    }
}
