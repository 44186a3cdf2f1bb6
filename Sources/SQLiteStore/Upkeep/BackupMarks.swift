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

    /// Turns a copy into a store, by the rules of ``RestoredContent``. Returns `nil` if the store is no copy.
    static func end(_ db: Database, now: Timestamp) throws -> RestoredStore? {
        guard let mark = try mark(db) else { return nil }
        let restored = try RestoredContent.adopt(RestoreGap(madeAt: mark.madeAt, restoredAt: now), by: "restore", db)
        try StoredFact.remove(key, db)
        return restored
    }

    /// See ``SQLSession/skipNumbers(of:)``.
    static func skipNumbers(of gap: RestoreGap, _ db: Database) throws {
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
