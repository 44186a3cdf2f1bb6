import GRDB
import Model
import Store

/// The audit log. It records each action with its actor and its time.
enum EventLog {
    /// Records an event and returns its number.
    ///
    /// - Parameter number: the event's number; `nil` for the next one.
    @discardableResult
    static func record(
        _ db: Database, number: Int64? = nil, kind: EventKind, run: Int64?, actor: Actor, detail: String,
        files: [String: String] = [:], now: Timestamp
    ) throws -> Int64 {
        try db.execute(
            sql: """
                INSERT INTO event (id, at, kind, run_id, actor, detail, files, uid, user, command, origin)
                VALUES (
                    :number, :now, :kind, :run, :actor, :detail, :files, :uid, :user, :command, :origin
                )
                """,
            arguments: [
                "number": number, "now": now.milliseconds, "kind": kind.rawValue, "run": run, "actor": actor.name,
                "detail": detail,
                "files": files.isEmpty ? nil : try StoredJSON.text(files), "uid": actor.recordedAccount.uid,
                "user": actor.recordedAccount.user,
                "command": actor.command, "origin": actor.origin.rawValue,
            ])
        let event = db.lastInsertedRowID
        try EventChain(db).append(event)
        return event
    }
}
