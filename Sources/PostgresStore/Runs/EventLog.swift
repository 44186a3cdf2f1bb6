import Model
import Store
import RelationalStore

/// The audit log. It records each action with its actor and its time.
enum EventLog {
    /// Records an event and returns its number. Call it late: no other transaction can record an event until this one
    /// ends.
    ///
    /// - Parameter number: the event's number; `nil` for the next one.
    @discardableResult
    static func record(
        _ db: PostgresSession, number: Int64? = nil, kind: EventKind, run: Int64?, actor: Actor, detail: String,
        files: [String: String] = [:], now: Timestamp
    ) throws -> Int64 {
        let account = actor.recordedAccount
        return try EventChain.append(
            db, now, kind.rawValue, run, actor.name, detail, files.isEmpty ? nil : try StoredJSON.text(files),
            account.uid, account.user, actor.command, actor.origin.rawValue, number: number)
    }
}
