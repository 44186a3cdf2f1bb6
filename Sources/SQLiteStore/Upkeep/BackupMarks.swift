import GRDB
import Model
import RelationalStore
import Store

/// The mark that distinguishes a copy from the store that was copied.
enum BackupMarks {
    private static let key = "backup"

    static func mark(_ db: Database) throws -> BackupMark? { try StoredFact.value(key, db) }

    /// Returns the period that the store lost at its latest restore; `nil` if there was no restore.
    static func gap(_ db: Database) throws -> RestoreGap? { try StoredFact.value(RestoreGap.key, db) }

    /// Marks a copy. A copy of a copy keeps the time of the first copy.
    static func set(_ mark: BackupMark, _ db: Database) throws {
        guard try db.tableExists("meta"), try self.mark(db) == nil else { return }
        try StoredFact.set(key, mark, db)
    }

    /// Turns a copy into a store. Every unfinished run waits until a person has confirmed the gap. Occurrences that
    /// fell due since the copy was made do not start automatically.
    static func end(_ db: Database, now: Timestamp) throws -> RestoredStore? {
        guard let mark = try mark(db) else { return nil }
        let actor: Actor = "restore"
        let open = try RunRow.list(db, "WHERE state IN (\(SQLConstants.list(RunState.unfinished))) ORDER BY id")
            .readable
        try endSessions(db, now: now)
        let tokens = try String.fetchAll(
            db,
            sql: """
                SELECT name FROM access_token
                WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)
                ORDER BY name
                """, arguments: ["now": now.milliseconds])
        var restored = RestoredStore(madeAt: mark.madeAt, restoredAt: now, runs: open, tokens: tokens)
        let gap = RestoreGap(madeAt: mark.madeAt, restoredAt: now)
        try StoredFact.set(RestoreGap.key, gap, db)
        try skipNumbers(of: gap, db)
        // Record this before the events of the pauses, so that the ids of those events are also above the ids of the
        // gap.
        let lastEvent = try Int64.fetchOne(db, sql: "SELECT max(id) FROM event") ?? 0
        try EventLog.record(
            db, number: lastEvent + gap.leap(of: "event"), kind: .storeRestored, run: nil, actor: actor,
            detail: restored.summary, now: now)
        for run in open { try RunStateChange(db, run.id, now: now).hold(run, RestorePolicy(gap), by: actor) }
        try db.execute(
            sql: "UPDATE schedule_mark SET since = max(since, :now)", arguments: ["now": now.milliseconds])
        // Treat the next poll of each feed as its first one, so that the items in the feed start no run.
        try db.execute(sql: "UPDATE feed SET is_read = 0, etag = NULL, last_modified = NULL")
        try db.execute(
            sql: "UPDATE approval SET state = :lapsed WHERE state = :open",
            arguments: [
                "lapsed": ApprovalRequest.State.lapsed.rawValue, "open": ApprovalRequest.State.open.rawValue,
            ])
        restored.runs = try open.map { try RunRow.require(db, $0.id) }
        try StoredFact.remove(key, db)
        return restored
    }

    /// Ends all sessions, sign-in links and invitations, because one that was ended or used in the lost time must not
    /// work again. People can sign in again, and admins can invite again; machines use tokens.
    private static func endSessions(_ db: Database, now: Timestamp) throws {
        try db.execute(sql: "DELETE FROM web_session")
        try db.execute(
            sql: """
                UPDATE access_token SET revoked_at = :now
                WHERE revoked_at IS NULL AND (is_invitation OR substr(name, 1, length(:link)) = :link)
                """, arguments: ["now": now.milliseconds, "link": AccessToken.linkPrefix])
    }

    /// Skips ids that the store may have assigned in the lost time. `apns-id`, collapse ids and `webhook-id` contain
    /// such ids, and must stay unique.
    private static func skipNumbers(of gap: RestoreGap, _ db: Database) throws {
        let tables = try String.fetchAll(
            db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'")
        for table in tables {
            let given = try Int64.fetchOne(
                db, sql: "SELECT seq FROM sqlite_sequence WHERE name = :table", arguments: ["table": table])
            try db.execute(sql: "DELETE FROM sqlite_sequence WHERE name = :table", arguments: ["table": table])
            try db.execute(
                sql: "INSERT INTO sqlite_sequence (name, seq) VALUES (:table, :number)",
                arguments: ["table": table, "number": (given ?? 0) + gap.leap(of: table)])
        }
    }
}
