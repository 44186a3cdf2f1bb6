package import Model
import Foundation
import GRDB
package import Store

extension SQLiteFileStore {
    /// Registers devices: an upsert by (topic, installation), or without one by (topic, environment, token), all
    /// records in one transaction. Tens of thousands a call are best: each transaction rewrites the pages of the
    /// indexes it touches.
    ///
    /// - Nil fields leave stored ones alone; `registered_at` and `last_seen_at` never go back.
    /// - A new token replaces the installation's, which is kept in the history; a record registered before the stored
    ///   one does not replace the token.
    /// - A token stored with another installation moves to the one now reporting it: two stored devices become one,
    ///   with the tags, segments and silent budget of both.
    /// - A device suspended or gone is active again with a new token, or when registered after its status.
    ///
    /// With `dryRun` nothing is kept of it: the counts are those the import would have, judged against the store as it is,
    /// so that a device given in two calls counts twice as new.
    package func importDevices(
        _ records: [DeviceRecord], now: Timestamp, dryRun: Bool
    ) async throws -> ImportCounts {
        try await write { db in
            try db.execute(sql: "PRAGMA cache_size = -\(StoreLimits.importCacheKiB)")
            guard dryRun else { return try Self.register(records, now: now, db) }
            var counts = ImportCounts()
            try db.inSavepoint {
                counts = try Self.register(records, now: now, db)
                return .rollback
            }
            return counts
        }
    }

    private static func register(_ records: [DeviceRecord], now: Timestamp, _ db: Database) throws -> ImportCounts {
        var registration = try DeviceRegistration(db, now: now)
        var counts = ImportCounts()
        for record in records {
            switch try registration.register(record) {
            case .inserted: counts.inserted += 1
            case .updated: counts.updated += 1
            case .tokenReplaced: counts.tokensReplaced += 1
            case .merged: counts.merged += 1
            case .unchanged: counts.unchanged += 1
            }
        }
        return counts
    }

    /// Hands out the matching devices, whatever their status, in batches and in order of id, from one snapshot; the
    /// whole tokens are in them. Returns how many. An error of `batch` ends it.
    package func exportDevices(
        topic: String?, matching expression: AudienceExpression, now: Timestamp,
        batch: @escaping @Sendable ([StoredDevice]) throws -> Void
    ) async throws -> Int {
        try await read { db in
            var condition = try AudienceCompiler(db, now: now).condition(for: expression)
            condition.arguments["topic"] = topic?.databaseValue ?? .null
            let rows = try Row.fetchCursor(
                db, sql: StoredDeviceRow.select(where: "(:topic IS NULL OR topic.name = :topic) AND \(condition.sql)"),
                arguments: StatementArguments(condition.arguments))
            return try Self.handOut(rows, batch)
        }
    }

    private static func handOut(_ rows: RowCursor, _ batch: ([StoredDevice]) throws -> Void) throws -> Int {
        var devices: [StoredDevice] = []
        var count = 0
        while let row = try rows.next() {
            devices.append(try StoredDeviceRow.device(row))
            guard devices.count == StoreLimits.exportBatchRows else { continue }
            count += devices.count
            try batch(devices)
            devices.removeAll(keepingCapacity: true)
        }
        if !devices.isEmpty { try batch(devices) }
        return count + devices.count
    }

    /// Devices by installation id, user id, whole token in hex, or the last 8 or more characters of a token (then the
    /// whole table is read). At most 20.
    package func devices(matching text: String) async throws -> [StoredDevice] {
        let hex = text.lowercased().drop { $0 == "…" }
        let isHex = hex.allSatisfy { $0.isASCII && $0.isHexDigit }
        return try await read { db in
            let exact = try Self.devices(
                db, where: "device.installation_id = :text OR device.user_id = :text OR device.token = :token",
                ["text": text, "token": DeviceToken(hex: text).map { Data($0.bytes) }])
            guard exact.isEmpty, isHex, hex.count >= 8 else { return exact }
            return try Self.devices(
                db, where: "substr(lower(hex(device.token)), -:count) = :suffix",
                ["count": hex.count, "suffix": String(hex)])
        }
    }

    /// The device that had this token before its present one. Reads all old tokens.
    package func device(thatHad token: DeviceToken) async throws -> StoredDevice? {
        try await read { db in
            try Self.devices(
                db, where: "device.id = (SELECT device_id FROM token_history WHERE token = :token LIMIT 1)",
                ["token": Data(token.bytes)]
            ).first
        }
    }

    /// Hands out the devices of one status in order of id, in batches. Reads the whole table. Returns how many.
    package func devices(
        withStatus status: DeviceStatus, batch: @escaping @Sendable ([StoredDevice]) throws -> Void
    ) async throws -> Int {
        try await read { db in
            let rows = try Row.fetchCursor(
                db, sql: StoredDeviceRow.select(where: "device.status = :status"), arguments: ["status": status.code])
            return try Self.handOut(rows, batch)
        }
    }

    package func device(_ id: Int64) async throws -> StoredDevice? {
        try await read { db in try Self.devices(db, where: "device.id = :id", ["id": id]).first }
    }

    /// How many devices there are, by topic, environment and status. Reads the whole table.
    package func deviceCounts() async throws -> [DeviceCount] {
        try await read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT topic.name, environment, status, count(*)
                    FROM device JOIN topic ON topic.id = device.topic_id
                    GROUP BY topic.id, environment, status
                    ORDER BY topic.name, environment, status
                    """
            ).map { row in
                DeviceCount(
                    topic: row[0], environment: PushEnvironment(code: row[1]), status: DeviceStatus(code: row[2]),
                    count: row[3])
            }
        }
    }

    private static func devices(
        _ db: Database, where condition: String, _ arguments: [String: (any DatabaseValueConvertible)?]
    ) throws -> [StoredDevice] {
        try Row.fetchAll(
            db, sql: StoredDeviceRow.select(where: condition) + " LIMIT \(StoreLimits.matchingDevicesMax)",
            arguments: StatementArguments(arguments)
        ).map(StoredDeviceRow.device)
    }
}
