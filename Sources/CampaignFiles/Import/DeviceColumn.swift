import Model

/// A column of a device import, CSV's or a key of JSON Lines.
enum DeviceColumn: Hashable, Sendable {
    case token, environment, topic, installationID, userID, locale, timeZone, country, appVersion, osVersion, model
    case alertsAllowed, registeredAt, lastSeenAt, tags
    /// `attributes`, an object; in JSON Lines only.
    case attributes
    /// `attributes.plan`.
    case attribute(String)

    static let named: [(name: String, column: DeviceColumn)] = [
        ("token", .token), ("environment", .environment), ("topic", .topic), ("installation_id", .installationID),
        ("user_id", .userID), ("locale", .locale), ("time_zone", .timeZone), ("country", .country),
        ("app_version", .appVersion), ("os_version", .osVersion), ("model", .model),
        ("alerts_allowed", .alertsAllowed), ("registered_at", .registeredAt), ("last_seen_at", .lastSeenAt),
        ("tags", .tags), ("attributes", .attributes),
    ]

    static let required: [DeviceColumn] = [.token, .environment, .topic]

    init?(named name: String) {
        let lowered = name.lowercased()
        if let match = Self.named.first(where: { $0.name == lowered }) {
            self = match.column
        } else if lowered.hasPrefix("attributes."), name.utf8.count > "attributes.".utf8.count {
            self = .attribute(String(name.dropFirst("attributes.".count)))
        } else {
            return nil
        }
    }

    var name: String {
        if case .attribute(let key) = self { return "attributes.\(key)" }
        return Self.named.first { $0.column == self }?.name ?? ""
    }

    /// For a name that is no column.
    static func advice(for name: String) -> String {
        let names = named.map(\.name)
        if let nearest = Suggestion.nearest(to: name, among: names) { return "did you mean \(quoted(nearest))?" }
        return "columns are \(names.dropLast().joined(separator: ", ")) and attributes.NAME"
    }
}
