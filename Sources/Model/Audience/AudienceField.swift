/// A column of the device table that an audience expression or a template may name.
package enum AudienceField: Hashable, Sendable, Codable {
    case installationID, userID, environment, locale, timeZone, country, appVersion, osVersion, model
    case alertsAllowed, registeredAt, lastSeenAt, badge
    /// `attribute("plan")`.
    case attribute(String)

    /// The plain fields by the name people write. `last_seen` and `registered` are accepted for the columns with `_at`.
    package static let named: [(name: String, field: AudienceField)] = [
        ("installation_id", .installationID), ("user_id", .userID), ("environment", .environment),
        ("locale", .locale), ("time_zone", .timeZone), ("country", .country), ("app_version", .appVersion),
        ("os_version", .osVersion), ("model", .model), ("alerts_allowed", .alertsAllowed),
        ("registered_at", .registeredAt), ("last_seen_at", .lastSeenAt), ("badge", .badge),
        ("registered", .registeredAt), ("last_seen", .lastSeenAt),
    ]

    package init?(named name: some StringProtocol) {
        guard let match = Self.named.first(where: { $0.name == name }) else { return nil }
        self = match.field
    }

    package var name: String {
        if case .attribute(let key) = self { return "attribute(\"\(key)\")" }
        return Self.named.first { $0.field == self }?.name ?? ""
    }

    package var kind: Kind {
        switch self {
        case .installationID, .userID, .environment, .timeZone, .country, .model, .attribute: .text
        case .locale: .locale
        case .appVersion, .osVersion: .version
        case .alertsAllowed: .boolean
        case .registeredAt, .lastSeenAt: .time
        case .badge: .number
        }
    }

    /// What a field may be compared with.
    package enum Kind: String, Sendable {
        case text, locale, version, boolean, time, number
    }
}
