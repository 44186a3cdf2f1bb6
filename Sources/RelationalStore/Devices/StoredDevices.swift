import Model
package import Store

/// Reads whole devices, in order of id.
package struct StoredDevices<Session: SQLSession> {
    private static var batchRows: Int { 5_000 }

    private let db: Session

    package init(_ db: Session) { self.db = db }

    /// Returns the query for devices.
    ///
    /// - Parameter condition: a constant text of this code, with `$1`, `$2` and so on for its values.
    package static func select(where condition: String) -> String {
        """
        SELECT device.id, device.token_generation, device.status, device.status_reason, device.status_at, device.badge,
            \(ProvenTokens.isCurrent),
            device.token, device.environment, topic.name,
            device.installation_id, device.user_id, device.locale, device.time_zone, device.country,
            device.app_version, device.os_version, device.model, device.alerts_allowed,
            device.registered_at, device.last_seen_at,
            \(Session.dialect.list("tag.name", "FROM tag WHERE tag.device_id = device.id")),
            \(Session.dialect.word("device.attributes", "device.attributes::text"))
        FROM device
        JOIN topic ON topic.id = device.topic_id
        WHERE \(condition)
        ORDER BY device.id
        """
    }

    package func find(_ id: Int64) throws -> StoredDevice? { try first(where: "device.id = $1", id) }

    package func first(where condition: String, _ value: any SQLValue) throws -> StoredDevice? {
        try db.all("\(Self.select(where: condition)) LIMIT 1", values: [value], read: Self.device).first
    }

    package func all(where condition: String, _ values: any SQLValue...) throws -> [StoredDevice] {
        try db.all("\(Self.select(where: condition))", values: values, read: Self.device)
    }

    func all(where condition: String, _ values: any SQLValue..., limit: Int) throws -> [StoredDevice] {
        try db.all("\(Self.select(where: condition)) LIMIT \(limit)", values: values, read: Self.device)
    }

    func all(where condition: AudienceCondition, limit: Int) throws -> [StoredDevice] {
        try db.all(
            .once("\(Self.select(where: condition.sql)) LIMIT \(limit)"), values: condition.values, read: Self.device)
    }

    /// Passes the devices to `batch` in batches, and returns their number.
    func handOut(where condition: AudienceCondition, _ batch: ([StoredDevice]) throws -> Void) throws -> Int {
        try db.batches(
            .once(Self.select(where: condition.sql)), values: condition.values, of: Self.batchRows, read: Self.device,
            batch: batch)
    }

    package static func device(_ row: Session.Fields) throws -> StoredDevice {
        StoredDevice(
            id: try row.int64(0), record: try record(row), generation: try row.int(1),
            status: DeviceStatus(code: try row.int64(2)), statusReason: try row.textOrNil(3),
            statusAt: try row.timestampOrNil(4), badge: try row.int(5), isProven: try row.bool(6))
    }

    private static func record(_ row: Session.Fields) throws -> DeviceRecord {
        let bytes = try row.bytes(7)
        guard let token = DeviceToken(bytes: bytes) else { throw UnreadableValue("a token of \(bytes.count) bytes") }
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

extension SQLSession {
    /// Returns members of a static segment, in order of their primary key.
    func members(of segment: Int64, after device: Int64, limit: Int) throws -> [StoredDevice] {
        try StoredDevices(self).all(
            where: """
                device.id IN (
                    SELECT device_id FROM segment_member WHERE segment_id = $1 AND device_id > $2
                    ORDER BY device_id LIMIT $3
                )
                """, segment, device, limit)
    }
}
