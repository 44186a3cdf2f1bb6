package import Model

/// Something to be put on record with a run that is created, in the same transaction.
package struct EventNote: Hashable, Sendable {
    package var kind: String
    package var detail: String

    package init(kind: String, detail: String) {
        self.kind = kind
        self.detail = detail
    }
}

/// One line of the audit trail.
package struct StoreEvent: Hashable, Sendable {
    package var at: Timestamp
    /// `run_created`, `run_paused`, `guard_overridden`, `devices_pruned`, ...
    package var kind: String
    package var run: Int64?
    package var campaign: String?
    /// In whose name: a person, the scheduler, or the process that holds a run.
    package var actor: Actor
    package var detail: String
    /// SHA-256 in hex of the files it was about, by path.
    package var files: [String: String]

    package init(
        at: Timestamp, kind: String, run: Int64?, campaign: String?, actor: Actor, detail: String,
        files: [String: String]
    ) {
        self.at = at
        self.kind = kind
        self.run = run
        self.campaign = campaign
        self.actor = actor
        self.detail = detail
        self.files = files
    }
}
