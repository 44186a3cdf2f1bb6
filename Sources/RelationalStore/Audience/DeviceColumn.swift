package import Model

/// The SQL of a field of the device.
package enum DeviceColumn {
    /// What the device has.
    ///
    /// - Parameter attribute: of the attribute with this key.
    package static func stored(_ field: AudienceField, attribute: (String) -> String) -> String {
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
        case .attribute(let key): attribute(key)
        }
    }
}
