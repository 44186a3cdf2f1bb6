import Model
import RelationalStore
import Store

/// The SQL of a field of the device; attributes need their key as a parameter.
enum AudienceColumn {
    /// What comparisons look at: versions by their sort keys.
    static func comparable(_ field: AudienceField, attributeKey: (String) -> String) -> String {
        switch field {
        case .appVersion: "device.app_version_key"
        case .osVersion: "device.os_version_key"
        case .country: "lower(device.country)"
        default: stored(field, attributeKey: attributeKey)
        }
    }

    /// The other side of a comparison: countries are compared without case.
    static func folded(_ text: String, of field: AudienceField) -> String {
        field == .country ? String(text.map { $0.isASCII ? Character($0.lowercased()) : $0 }) : text
    }

    /// What the device has.
    static func stored(_ field: AudienceField, attributeKey: (String) -> String) -> String {
        DeviceColumn.stored(field) { key in "(device.attributes ->> \(attributeKey(key)))" }
    }

    /// What a template prints, as text.
    static func printed(_ field: AudienceField, attributeKey: (String) -> String) -> String {
        switch field {
        case .alertsAllowed: "device.alerts_allowed::text"
        case .registeredAt: SQLConstants.second("device.registered_at")
        case .lastSeenAt: SQLConstants.second("device.last_seen_at")
        case .badge: "device.badge::text"
        default: stored(field, attributeKey: attributeKey)
        }
    }
}

/// Fields of the device behind a list of columns, as templates print them.
struct FieldColumns {
    /// Of the attributes among them; one array is one parameter, however many there are.
    let keys: [String]
    private let fields: [AudienceField]

    init(_ fields: [AudienceField]) {
        self.fields = fields
        keys = fields.compactMap { field in
            if case .attribute(let key) = field { key } else { nil }
        }
    }

    /// Each with a comma in front.
    ///
    /// - Parameter parameter: the number of ``keys``.
    func sql(parameter: Int) -> String {
        fields.map { field in
            ", "
                + AudienceColumn.printed(field) { key in
                    "($\(parameter)::text[])[\((keys.firstIndex(of: key) ?? 0) + 1)]"
                }
        }.joined()
    }
}
