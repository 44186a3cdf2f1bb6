/// The audience of a campaign, as a tree. The logic has two values: a comparison with a field that a device does not
/// have is false, and its `not` is true. Comparisons of texts ignore case only for some fields (`country`).
package indirect enum AudienceExpression: Hashable, Sendable, Codable {
    /// Every device of the topic. The author must write it. A campaign file with neither `audience` nor `audience_sql`
    /// is refused.
    case everyone
    case all([AudienceExpression])
    case any([AudienceExpression])
    case not(AudienceExpression)
    case comparison(AudienceField, ComparisonOperator, AudienceValue)
    case between(AudienceField, AudienceValue, AudienceValue)
    /// `in (...)`; for `locale` each value is a language range.
    case oneOf(AudienceField, [AudienceValue])
    case isNull(AudienceField)
    /// `last_seen within 90 days`: the time is at most that old when the audience is frozen.
    case within(AudienceField, Duration)
    case segment(String)
    case tag(String)

    private enum CodingKeys: String, CodingKey {
        case everyone = "everyone", all = "all", any = "any", not = "not", comparison = "comparison"
        case between = "between", oneOf = "oneOf", isNull = "isNull", within = "within", segment = "segment"
        case tag = "tag"
    }

    /// Whether `everyone` occurs anywhere in the expression.
    package var namesEveryone: Bool {
        switch self {
        case .everyone: true
        case .all(let parts), .any(let parts): parts.contains(where: \.namesEveryone)
        case .not(let part): part.namesEveryone
        case .segment, .comparison, .between, .oneOf, .isNull, .within, .tag: false
        }
    }

    /// The conditions that must all hold.
    package var conditions: [AudienceExpression] {
        if case .all(let parts) = self, !parts.isEmpty { return parts.flatMap(\.conditions) }
        return [self]
    }

    /// Every segment named anywhere in the expression.
    package var segments: Set<String> {
        switch self {
        case .all(let parts), .any(let parts): parts.reduce(into: []) { $0.formUnion($1.segments) }
        case .not(let part): part.segments
        case .segment(let name): [name]
        case .everyone, .comparison, .between, .oneOf, .isNull, .within, .tag: []
        }
    }

    /// The segments whose members are excluded: those under an odd number of `not`s.
    package var segmentsLeftOut: Set<String> { segments(isIncluded: true) }

    private func segments(isIncluded: Bool) -> Set<String> {
        switch self {
        case .all(let parts), .any(let parts):
            parts.reduce(into: []) { $0.formUnion($1.segments(isIncluded: isIncluded)) }
        case .not(let part): part.segments(isIncluded: !isIncluded)
        case .segment(let name): isIncluded ? [] : [name]
        case .everyone, .comparison, .between, .oneOf, .isNull, .within, .tag: []
        }
    }
}

package enum ComparisonOperator: String, Hashable, Sendable, Codable, CaseIterable {
    case equal = "="
    case notEqual = "!="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
}

/// A literal, already converted to its field's kind.
package enum AudienceValue: Hashable, Sendable, Codable {
    case text(String)
    case number(Double)
    case boolean(Bool)
    case time(Timestamp)
    case version(AppVersion)
    case locale(LocaleTag)

    private enum CodingKeys: String, CodingKey {
        case text = "text", number = "number", boolean = "boolean", time = "time", version = "version"
        case locale = "locale"
    }
}

/// An audience expression as its author wrote it, and as parsed.
package struct Audience: Hashable, Sendable, Codable {
    package var source: String
    package var expression: AudienceExpression

    private enum CodingKeys: String, CodingKey {
        case source = "source", expression = "expression"
    }

    package init(source: String, expression: AudienceExpression) {
        self.source = source
        self.expression = expression
    }

    package static let everyone = Audience(source: "", expression: .everyone)
}

/// A column of the device table that an audience expression or a template may name.
package enum AudienceField: Hashable, Sendable, Codable {
    case installationID, userID, environment, locale, timeZone, country, appVersion, osVersion, model
    case alertsAllowed, registeredAt, lastSeenAt, badge
    /// `attribute("plan")`.
    case attribute(String)

    private enum CodingKeys: String, CodingKey {
        case installationID = "installationID", userID = "userID", environment = "environment"
        case locale = "locale", timeZone = "timeZone", country = "country", appVersion = "appVersion"
        case osVersion = "osVersion", model = "model", alertsAllowed = "alertsAllowed"
        case registeredAt = "registeredAt", lastSeenAt = "lastSeenAt", badge = "badge", attribute = "attribute"
    }

    /// The plain fields by their written name. `last_seen` and `registered` are accepted for the columns with `_at`.
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

    /// The name after `device.` in the placeholder of a template: `attributes.plan`.
    package var templateName: String {
        if case .attribute(let key) = self { return "attributes.\(key)" }
        return name
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

    /// The kind of value that a field may be compared with.
    package enum Kind: String, Sendable {
        case text, locale, version, boolean, time, number
    }
}
