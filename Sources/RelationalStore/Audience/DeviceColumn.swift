package import Model

/// The SQL of a field of the device.
///
/// The key of an attribute is passed as a parameter. `key` takes that text and returns its typed placeholder.
package struct DeviceColumn {
    private let dialect: SQLDialect

    package init(_ dialect: SQLDialect) { self.dialect = dialect }

    /// Returns the SQL for comparisons: versions by their sort keys, countries without case.
    package func comparable(_ field: AudienceField, key: (String) -> String) -> String {
        switch field {
        case .appVersion: "device.app_version_key"
        case .osVersion: "device.os_version_key"
        case .country: dialect.word("device.country COLLATE NOCASE", "lower(device.country)")
        default: stored(field, key: key)
        }
    }

    /// Returns the SQL for the stored value.
    package func stored(_ field: AudienceField, key: (String) -> String) -> String {
        switch field {
        case .installationID: "device.installation_id"
        case .userID: "device.user_id"
        case .environment: SQLConstants.environment("device.environment")
        case .locale: "device.locale"
        case .timeZone: "device.time_zone"
        case .country: "device.country"
        case .appVersion: "device.app_version"
        case .osVersion: "device.os_version"
        case .model: "device.model"
        case .alertsAllowed: "device.alerts_allowed"
        case .registeredAt: "device.registered_at"
        case .lastSeenAt: "device.last_seen_at"
        case .badge: "device.badge"
        case .attribute(let name): attribute(name, key: key)
        }
    }

    /// Returns the SQL for the value that a template prints. On PostgreSQL every field is a text. On SQLite it has
    /// the type that is stored.
    package func printed(_ field: AudienceField, key: (String) -> String) -> String {
        switch field {
        case .alertsAllowed:
            "CASE WHEN device.alerts_allowed THEN 'true' WHEN NOT device.alerts_allowed THEN 'false' END"
        case .registeredAt: dialect.second("device.registered_at")
        case .lastSeenAt: dialect.second("device.last_seen_at")
        case .badge: dialect.word("device.badge", "device.badge::text")
        default: stored(field, key: key)
        }
    }

    private func attribute(_ name: String, key: (String) -> String) -> String {
        switch dialect {
        case .postgres: "(device.attributes ->> \(key(name)))"
        // A JSON path cannot quote every key: SQLite reads a label only up to the next quote.
        case .sqlite where Self.isPlain(name): "json_extract(device.attributes, \(key("$.\"\(name)\"")))"
        case .sqlite: "(SELECT value FROM json_each(device.attributes) WHERE key = \(key(name)) LIMIT 1)"
        }
    }

    private static func isPlain(_ key: String) -> Bool {
        !key.isEmpty
            && key.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."),
                    UInt8(ascii: " "):
                    true
                default: false
                }
            }
    }
}
