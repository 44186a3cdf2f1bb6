import GRDB
package import Model

/// Who did what, when.
enum EventLog {
    static func record(
        _ db: Database, kind: String, run: Int64?, actor: String, detail: String, now: Timestamp
    ) throws {
        try db.execute(
            sql: """
                INSERT INTO event (at, kind, run_id, actor, detail) VALUES (:now, :kind, :run, :actor, :detail)
                """,
            arguments: ["now": now.milliseconds, "kind": kind, "run": run, "actor": actor, "detail": detail])
    }
}

/// One line of the audit trail.
package struct StoreEvent: Hashable, Sendable {
    package var at: Timestamp
    package var kind: String
    package var run: Int64?
    package var actor: String
    package var detail: String
}
