import Model
import Store
import RelationalStore

/// Who did what, when.
enum EventLog {
    /// Returns its number. Until the transaction ends nobody else puts anything on record: to be called late.
    @discardableResult
    static func record(
        _ db: PostgresSession, kind: EventKind, run: Int64?, actor: Actor, detail: String,
        files: [String: String] = [:], now: Timestamp
    ) throws -> Int64 {
        let account = actor.account
        return try EventChain.append(
            db, now, kind.rawValue, run, actor.name, detail, files.isEmpty ? nil : try StoredJSON.text(files),
            account?.uid, account?.user ?? actor.signedInAs, actor.command, actor.origin.rawValue)
    }
}
