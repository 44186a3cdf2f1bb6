import Foundation
import GRDB
import Store
import Model

/// Reads whole devices.
enum StoredDeviceRow {
    /// `condition` is one of our own texts, its values named parameters.
    static func select(where condition: String) -> String {
        """
        SELECT device.*, topic.name AS topic,
            proven_token.device_id IS NOT NULL AS is_proven,
            (SELECT json_group_array(tag.name) FROM tag WHERE tag.device_id = device.id) AS tags
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
            id: row["id"], record: try record(row), generation: row["token_generation"],
            status: DeviceStatus(code: row["status"]), statusReason: row["status_reason"],
            statusAt: Timestamp(stored: row["status_at"]), badge: row["badge"], isProven: row["is_proven"])
    }

    private static func record(_ row: Row) throws -> DeviceRecord {
        let bytes: Data = row["token"]
        guard let token = DeviceToken(bytes: Array(bytes)) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a token of \(bytes.count) bytes")
        }
        var record = DeviceRecord(
            token: token, environment: PushEnvironment(code: row["environment"]), topic: row["topic"])
        record.installationID = row["installation_id"]
        record.userID = row["user_id"]
        record.locale = row["locale"]
        record.timeZone = row["time_zone"]
        record.country = row["country"]
        record.appVersion = row["app_version"]
        record.osVersion = row["os_version"]
        record.model = row["model"]
        record.alertsAllowed = row["alerts_allowed"]
        record.registeredAt = Timestamp(stored: row["registered_at"])
        record.lastSeenAt = Timestamp(stored: row["last_seen_at"])
        record.tags = try JSONDecoder().decode([String].self, from: Data((row["tags"] as String).utf8)).sorted()
        record.attributes = try (row["attributes"] as String?).map(JSONText.attributes)
        return record
    }
}
