import Foundation
import GRDB
import Store
import Model

/// The devices an `audience_sql` selects, as a condition on `device`: asked once, on a connection of its own, and kept
/// in a temporary table of the reading connection while it is needed. The table lives in a temporary file, so that memory
/// does not grow with it.
enum AnalystAudience {
    /// Throws `StoreError.audienceSQL`.
    static func with<Value>(
        _ sql: String, now: Timestamp, _ db: Database, _ body: (String) throws -> Value
    ) throws -> Value {
        try drop(db)
        try db.execute(sql: "CREATE TEMP TABLE audience_sql_device (id INTEGER PRIMARY KEY) STRICT")
        try fill(db, sql, now: now)
        let result = Result { try body("device.id IN (SELECT id FROM temp.audience_sql_device)") }
        // After a cancellation nothing can be dropped any more; the next audience does it.
        let end = Result { try drop(db) }
        let value = try result.get()
        try end.get()
        return value
    }

    private static func fill(_ db: Database, _ sql: String, now: Timestamp) throws {
        let path = try String.fetchOne(db, sql: "SELECT file FROM pragma_database_list WHERE name = 'main'") ?? ""
        let insertion = try RowStatement(
            db, "INSERT OR IGNORE INTO temp.audience_sql_device (id) VALUES (:id)", arguments: ["id": nil])
        let id = insertion.parameter(":id")
        let connection = try AnalystConnection(path: path, timeLimit: StoreLimits.audienceSQLTime)
        try connection.select(sql, now: now) { device in
            try insertion.bind(device, id)
            try insertion.run()
        }
    }

    private static func drop(_ db: Database) throws {
        try db.execute(sql: "DROP TABLE IF EXISTS temp.audience_sql_device")
    }
}
