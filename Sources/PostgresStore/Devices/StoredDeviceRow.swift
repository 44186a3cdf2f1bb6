import Model
import Store
import RelationalStore

/// Reads whole devices.
enum StoredDeviceRow {
    /// `condition` is one of our own texts, its values `$1` and on.
    static func select(where condition: String) -> String {
        """
        SELECT device.id, device.token_generation, device.status, device.status_reason, device.status_at, device.badge,
            EXISTS (
                SELECT 1 FROM proven_token
                WHERE proven_token.device_id = device.id
                    AND proven_token.token_generation = device.token_generation
            ),
            device.token, device.environment, topic.name,
            device.installation_id, device.user_id, device.locale, device.time_zone, device.country,
            device.app_version, device.os_version, device.model, device.alerts_allowed,
            device.registered_at, device.last_seen_at,
            ARRAY (SELECT tag.name FROM tag WHERE tag.device_id = device.id), device.attributes::text
        FROM device
        JOIN topic ON topic.id = device.topic_id
        WHERE \(condition)
        ORDER BY device.id
        """
    }

    static func find(_ id: Int64, _ db: PostgresSession) throws -> StoredDevice? {
        try fetch("device.id = $1", id, db)
    }

    /// The first one.
    static func fetch(
        _ condition: String, _ value: any PostgresValue, _ db: PostgresSession
    ) throws -> StoredDevice? {
        try db.rows("\(select(where: condition)) LIMIT 1", value).first.map(device)
    }

    /// Hands out the devices in batches. How many there were.
    static func handOut(
        where condition: String, values: [any PostgresValue], _ db: PostgresSession,
        _ batch: ([StoredDevice]) throws -> Void
    ) throws -> Int {
        var devices: [StoredDevice] = []
        var count = 0
        try db.each(.once(select(where: condition)), values: values) { row in
            devices.append(try device(row))
            guard devices.count == batchRows else { return }
            count += devices.count
            try batch(devices)
            devices.removeAll(keepingCapacity: true)
        }
        if !devices.isEmpty { try batch(devices) }
        return count + devices.count
    }

    private static let batchRows = 5_000

    static func device(_ row: PostgresRow) throws -> StoredDevice {
        StoredDevice(
            id: try row.int64(0), record: try record(row), generation: try row.int(1),
            status: DeviceStatus(code: try row.int64(2)), statusReason: try row.textOrNil(3),
            statusAt: try row.timestampOrNil(4), badge: try row.int(5), isProven: try row.bool(6))
    }

    private static func record(_ row: PostgresRow) throws -> DeviceRecord {
        let bytes = try row.bytes(7)
        guard let token = DeviceToken(bytes: bytes) else { throw StoreDamage("a token of \(bytes.count) bytes") }
        var record = DeviceRecord(
            token: token, environment: PushEnvironment(code: try row.int64(8)), topic: try row.text(9))
        record.installationID = try row.textOrNil(10)
        record.userID = try row.textOrNil(11)
        record.locale = try row.textOrNil(12)
        record.timeZone = try row.textOrNil(13)
        record.country = try row.textOrNil(14)
        record.appVersion = try row.textOrNil(15)
        record.osVersion = try row.textOrNil(16)
        record.model = try row.textOrNil(17)
        record.alertsAllowed = try row.boolOrNil(18)
        record.registeredAt = try row.timestampOrNil(19)
        record.lastSeenAt = try row.timestampOrNil(20)
        record.tags = try row.texts(21).sorted()
        record.attributes = try row.textOrNil(22).map { try StoredJSON.value($0) }
        return record
    }
}
