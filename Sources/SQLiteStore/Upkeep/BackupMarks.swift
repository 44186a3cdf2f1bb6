import GRDB
import Model
import Store

/// The mark that tells a copy from the store it was made of.
enum BackupMarks {
    private static let key = "backup"

    static func mark(_ db: Database) throws -> BackupMark? { try MoveMarks.value(key, db) }

    /// A copy of a copy keeps the time of the first.
    static func set(_ mark: BackupMark, _ db: Database) throws {
        guard try db.tableExists("meta"), try self.mark(db) == nil else { return }
        try MoveMarks.set(key, mark, db)
    }

    /// Turns a copy into a store: what was open waits for a person, and nothing of the time since the copy starts by itself.
    static func end(_ db: Database, now: Timestamp) throws -> RestoredStore? {
        guard let mark = try mark(db) else { return nil }
        let policy = RestorePolicy(mark)
        let actor: Actor = "restore"
        let open = try RunRow.list(db, "WHERE state IN (\(SQLConstants.list(RunState.unfinished))) ORDER BY id", [:])
            .readable
        for run in open {
            guard let reason = policy.pauseReason(of: run) else { continue }
            try RunStateChange(db, run.id, now: now).note(.paused, reason: reason, actor: actor, halt: .restored)
        }
        try db.execute(
            sql: "UPDATE schedule_mark SET since = max(since, :now)", arguments: ["now": now.milliseconds])
        // As a feed that is polled for the first time: its items are known, and start nothing.
        try db.execute(sql: "UPDATE feed SET is_read = 0, etag = NULL, last_modified = NULL")
        try db.execute(
            sql: "UPDATE approval SET state = :lapsed WHERE state = :open",
            arguments: [
                "lapsed": ApprovalRequest.State.lapsed.rawValue, "open": ApprovalRequest.State.open.rawValue,
            ])
        let restored = RestoredStore(
            madeAt: mark.madeAt, restoredAt: now, runs: try open.map { try RunRow.require(db, $0.id) })
        try EventLog.record(db, kind: .storeRestored, run: nil, actor: actor, detail: restored.words, now: now)
        try MoveMarks.remove(key, db)
        return restored
    }
}
