import GRDB
import Store
import Model

/// What webhooks are to be told, written in the transaction that makes it true: a crash loses none of it.
enum Outbox {
    /// A pause a person asked for is no news to whoever asked; tests concern nobody.
    static func add(
        _ state: RunState, of run: Int64, reason: String?, pausedBy: String?, event: Int64, now: Timestamp,
        _ db: Database
    ) throws {
        guard pausedBy == nil else { return }
        try db.execute(
            sql: """
                INSERT INTO webhook_message (event_id, url, run_id, state, reason, at, next_at)
                SELECT :event, url, :run, :state, :reason, :now, :now FROM webhook
                WHERE event = :state AND EXISTS (SELECT 1 FROM run WHERE id = :run AND is_test = 0)
                """,
            arguments: [
                "event": event, "run": run, "state": state.rawValue, "reason": reason, "now": now.milliseconds,
            ])
    }
}
