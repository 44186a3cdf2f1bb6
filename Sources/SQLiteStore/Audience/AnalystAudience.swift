package import GRDB
package import Model
package import RelationalStore
import Store

extension SQLiteFileStore {
    package func selecting<Value: Sendable>(
        _ campaign: Campaign, now: Timestamp,
        _ body: @escaping @Sendable (Database, AudienceSelection) throws -> Value
    ) async throws -> Value {
        try await read { db in
            try AnalystAudience.with(campaign, now: now, db) { analyst in
                try body(db, AudienceSelection.of(campaign, analyst: analyst, now: now, db))
            }
        }
    }
}

/// The devices that an `audience_sql` selects, as a condition on `device`. The query runs once, on a separate
/// connection. A temporary table of the reading connection holds the result while it is needed. SQLite keeps that
/// table in a temporary file, so memory use does not grow with the result.
enum AnalystAudience {
    /// Calls `body` with the devices of the campaign's `audience_sql`, or with `nil` if the campaign has none.
    /// `body` must finish its statements before it returns.
    ///
    /// - Throws: `StoreError.audienceSQL`.
    static func with<Value>(
        _ campaign: Campaign, now: Timestamp, _ db: Database, _ body: (AudienceCondition?) throws -> Value
    ) throws -> Value {
        guard let sql = campaign.audienceSQL else { return try body(nil) }
        try drop(db)
        try db.execute(sql: "CREATE TEMP TABLE audience_sql_device (id INTEGER PRIMARY KEY) STRICT")
        try fill(db, sql, app: campaign.topic, now: now)
        let result = Result { try body(AudienceCondition("device.id IN (SELECT id FROM temp.audience_sql_device)")) }
        // After a cancellation this fails, and the next call drops the table instead.
        let end = Result { try drop(db) }
        let value = try result.get()
        try end.get()
        return value
    }

    private static func fill(_ db: Database, _ sql: String, app: String, now: Timestamp) throws {
        let insertion = try RowStatement(
            db, "INSERT OR IGNORE INTO temp.audience_sql_device (id) VALUES (:id)", arguments: ["id": nil])
        let id = insertion.parameter(":id")
        let connection = try AnalystConnection(
            address: StoreReading.address(of: db), app: app, timeLimit: StoreLimits.audienceSQLTime,
            isCancelled: {
                // If the read is cancelled, every statement of its connection throws.
                do { return try Int.fetchOne(db, sql: "SELECT 1") == nil } catch { return true }
            })
        try connection.select(sql, now: now) { device in
            try insertion.bind(device, id)
            try insertion.run()
        }
    }

    private static func drop(_ db: Database) throws {
        try db.execute(sql: "DROP TABLE IF EXISTS temp.audience_sql_device")
    }
}
