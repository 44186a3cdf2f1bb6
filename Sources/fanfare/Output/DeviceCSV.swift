import Model
import Store

/// A device as a line of the CSV that `devices import` reads.
enum DeviceCSV {
    static let columns = [
        "token", "environment", "topic", "installation_id", "user_id", "locale", "time_zone", "country", "app_version",
        "os_version", "model", "alerts_allowed", "registered_at", "last_seen_at", "tags",
    ]

    static func values(of record: DeviceRecord) -> [String] {
        [
            record.token.hex, record.environment.rawValue, record.topic, record.installationID ?? "",
            record.userID ?? "", record.locale ?? "", record.timeZone ?? "", record.country ?? "",
            record.appVersion ?? "", record.osVersion ?? "", record.model ?? "",
            record.alertsAllowed.map { $0 ? "true" : "false" } ?? "", record.registeredAt?.iso8601 ?? "",
            record.lastSeenAt?.iso8601 ?? "", (record.tags ?? []).joined(separator: ";"),
        ]
    }
}
