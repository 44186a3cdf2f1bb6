import Foundation
import GRDB
package import Model
package import Store

extension SQLiteFileStore {
    package func importDevices(
        _ records: [DeviceRecord], now: Timestamp, dryRun: Bool
    ) async throws -> ImportCounts {
        let path = path
        return try await writeImporting { db in
            guard try PutOffIndexes(db).names().isEmpty else { throw StoreError.busy(path: path) }
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
        for record in records { counts.add(try registration.register(record).effect) }
        try registration.finish()
        return counts
    }

    package func registerDevices(
        _ records: [DeviceRecord], reading: Bool, now: Timestamp
    ) async throws -> [RegisteredDevice] {
        let path = path
        return try await write { db in
            guard try PutOffIndexes(db).names().isEmpty else { throw StoreError.busy(path: path) }
            var registration = try DeviceRegistration(db, now: now)
            var registered: [RegisteredDevice] = []
            registered.reserveCapacity(records.count)
            for record in records {
                let (effect, id) = try registration.register(record)
                // At once: a later record may merge this device into another one.
                let device = reading ? try Self.devices(db, where: "device.id = :id", ["id": id]).first : nil
                registered.append(RegisteredDevice(effect: effect, device: device))
            }
            try registration.finish()
            return registered
        }
    }

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

    package func devices(matching text: String) async throws -> [StoredDevice] {
        let hex = text.lowercased().drop { $0 == "…" }
        let isHex = hex.allSatisfy { $0.isASCII && $0.isHexDigit }
        return try await read { db in
            let exact = try Self.devices(
                db, where: "device.installation_id = :text OR device.user_id = :text OR device.token = :token",
                ["text": text, "token": DeviceToken(hex: text).map { Data($0.bytes) }])
            guard isHex, TokenEnd.isAsked(byCharacters: hex.count, exact: exact.count) else { return exact }
            let ending = try Self.devices(
                db, where: "substr(lower(hex(device.token)), -:count) = :suffix",
                ["count": hex.count, "suffix": String(hex)])
            return TokenEnd.joined(exact, ending)
        }
    }

    package func device(thatHad token: DeviceToken) async throws -> StoredDevice? {
        try await read { db in
            try Self.devices(
                db, where: "device.id = (SELECT device_id FROM token_history WHERE token = :token LIMIT 1)",
                ["token": Data(token.bytes)]
            ).first
        }
    }

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
        try await read(.short) { db in try Self.devices(db, where: "device.id = :id", ["id": id]).first }
    }

    package func topics() async throws -> Set<String> {
        try await read(.short) { db in try String.fetchSet(db, sql: "SELECT name FROM topic") }
    }

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
            db.cachedStatement(
                sql: StoredDeviceRow.select(where: condition) + " LIMIT \(StoreLimits.matchingDevicesMax)"),
            arguments: StatementArguments(arguments)
        ).map(StoredDeviceRow.device)
    }
}

/// Reads whole devices, by the places of their columns: names are looked up anew for every row.
enum StoredDeviceRow {
    /// `condition` is one of our own texts, its values named parameters.
    static func select(where condition: String) -> String {
        """
        SELECT device.id, device.token_generation, device.status, device.status_reason, device.status_at, device.badge,
            proven_token.device_id IS NOT NULL,
            device.token, device.environment, topic.name,
            device.installation_id, device.user_id, device.locale, device.time_zone, device.country,
            device.app_version, device.os_version, device.model, device.alerts_allowed,
            device.registered_at, device.last_seen_at,
            (SELECT json_group_array(tag.name) FROM tag WHERE tag.device_id = device.id), device.attributes
        FROM device
        JOIN topic ON topic.id = device.topic_id
        LEFT JOIN proven_token ON proven_token.device_id = device.id
            AND proven_token.token_generation = device.token_generation
        WHERE \(condition)
        ORDER BY device.id
        """
    }

    static func device(_ row: Row) throws -> StoredDevice {
        StoredDevice(
            id: row[0], record: try record(row), generation: row[1], status: DeviceStatus(code: row[2]),
            statusReason: row[3], statusAt: Timestamp(stored: row[4]), badge: row[5], isProven: row[6])
    }

    private static func record(_ row: Row) throws -> DeviceRecord {
        let bytes: Data = row[7]
        guard let token = DeviceToken(bytes: Array(bytes)) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a token of \(bytes.count) bytes")
        }
        var record = DeviceRecord(token: token, environment: PushEnvironment(code: row[8]), topic: row[9])
        record.installationID = row[10]
        record.userID = row[11]
        record.locale = row[12]
        record.timeZone = row[13]
        record.country = row[14]
        record.appVersion = row[15]
        record.osVersion = row[16]
        record.model = row[17]
        record.alertsAllowed = row[18]
        record.registeredAt = Timestamp(stored: row[19])
        record.lastSeenAt = Timestamp(stored: row[20])
        let tags: String = row[21]
        record.tags = tags == "[]" ? [] : (try StoredJSON.value(tags) as [String]).sorted()
        record.attributes = try (row[22] as String?).map { try StoredJSON.value($0) }
        return record
    }
}
