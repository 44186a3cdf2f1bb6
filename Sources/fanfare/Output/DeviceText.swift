import Model
import Store

/// A device as people read it; its token by the last 8 characters.
enum DeviceText {
    static func text(_ device: StoredDevice) -> String {
        fields(device).map { name, value in name.padded(to: 18) + value }.joined(separator: "\n")
    }

    /// One line: who it is, and what an audience most often asks for.
    static func line(_ device: StoredDevice) -> String {
        let record = device.record
        let all: [String?] = [
            record.installationID ?? "device \(device.id)", record.token.redacted, record.environment.rawValue,
            record.locale, record.appVersion, device.status == .active ? nil : device.status.rawValue,
        ]
        return all.compactMap(\.self).joined(separator: " ")
    }

    private static func fields(_ device: StoredDevice) -> [(String, String)] {
        let record = device.record
        let all: [(String, String?)] = [
            ("device", "\(device.id)"), ("installation_id", record.installationID), ("user_id", record.userID),
            ("topic", record.topic), ("environment", record.environment.rawValue),
            ("token", record.token.redacted), ("status", device.status.rawValue),
            ("status_reason", device.statusReason), ("status_at", device.statusAt?.iso8601),
            ("locale", record.locale), ("time_zone", record.timeZone),
            ("country", record.country), ("app_version", record.appVersion), ("os_version", record.osVersion),
            ("model", record.model), ("alerts_allowed", record.alertsAllowed.map { $0 ? "true" : "false" }),
            ("registered_at", record.registeredAt?.iso8601), ("last_seen_at", record.lastSeenAt?.iso8601),
            ("tags", record.tags.flatMap { $0.isEmpty ? nil : $0.joined(separator: ", ") }),
        ]
        return all.compactMap { name, value in value.map { (name, $0) } }
    }
}
