import RelationalStore
import Store
import Model

/// The SQL of a field of the device; attributes need their key as a parameter.
enum AudienceColumn {
    /// What comparisons look at: versions by their sort keys.
    static func comparable(_ field: AudienceField, attributeKey: (String) -> String) -> String {
        switch field {
        case .appVersion: "device.app_version_key"
        case .osVersion: "device.os_version_key"
        case .country: "device.country COLLATE NOCASE"
        default: stored(field, attributeKey: attributeKey)
        }
    }

    /// What the device has.
    static func stored(_ field: AudienceField, attributeKey: (String) -> String) -> String {
        DeviceColumn.stored(field) { key in attribute(key, attributeKey: attributeKey) }
    }

    /// What a template prints.
    static func printed(_ field: AudienceField, attributeKey: (String) -> String) -> String {
        switch field {
        case .alertsAllowed: "CASE device.alerts_allowed WHEN 1 THEN 'true' WHEN 0 THEN 'false' END"
        case .registeredAt: "strftime('%Y-%m-%dT%H:%M:%SZ', device.registered_at / 1000, 'unixepoch')"
        case .lastSeenAt: "strftime('%Y-%m-%dT%H:%M:%SZ', device.last_seen_at / 1000, 'unixepoch')"
        default: stored(field, attributeKey: attributeKey)
        }
    }

    /// A JSON path cannot quote every key (SQLite reads a label up to the next quote); unusual keys are looked for
    /// one by one.
    private static func attribute(_ key: String, attributeKey: (String) -> String) -> String {
        let isPlain =
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
        return isPlain
            ? "json_extract(device.attributes, \(attributeKey("$.\"\(key)\"")))"
            : "(SELECT value FROM json_each(device.attributes) WHERE key = \(attributeKey(key)) LIMIT 1)"
    }
}
