package import Model
package import Store

extension AudienceResolver {
    /// Looks segments up in the transaction of `db`.
    ///
    /// - Parameter defined: what a segment is about to be, whatever it is on record.
    package init(
        _ db: some SQLSession, now: Timestamp, defining defined: (name: String, expression: AudienceExpression)?
    ) {
        let catalog = SegmentCatalog(db)
        self.init(now: now) { name in
            if let defined, defined.name == name { return SegmentEntry(id: 0, expression: defined.expression) }
            return try catalog.entry(of: name)
        }
    }
}

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
