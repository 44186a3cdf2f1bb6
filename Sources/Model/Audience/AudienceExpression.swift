/// Which devices a campaign is for, as a tree. Two-valued: a comparison with a field that a device does not have is
/// false, and `not` of it true. Texts compare without regard to case only where the field says so (`country`).
package indirect enum AudienceExpression: Hashable, Sendable, Codable {
    /// No expression: every device of the topic.
    case everyone
    case all([AudienceExpression])
    case any([AudienceExpression])
    case not(AudienceExpression)
    case comparison(AudienceField, ComparisonOperator, AudienceValue)
    case between(AudienceField, AudienceValue, AudienceValue)
    /// `in (...)`; for `locale` each value is a language range.
    case oneOf(AudienceField, [AudienceValue])
    case isNull(AudienceField)
    /// `last_seen within 90 days`: not older than that, at the moment of freezing.
    case within(AudienceField, Duration)
    case segment(String)
    case tag(String)

    /// Every segment named anywhere inside.
    package var segments: Set<String> {
        switch self {
        case .all(let parts), .any(let parts): parts.reduce(into: []) { $0.formUnion($1.segments) }
        case .not(let part): part.segments
        case .segment(let name): [name]
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

/// A literal, already of the kind its field asks for.
package enum AudienceValue: Hashable, Sendable, Codable {
    case text(String)
    case number(Double)
    case boolean(Bool)
    case time(Timestamp)
    case version(AppVersion)
    case locale(LocaleTag)
}

/// An audience as written, with its meaning.
package struct Audience: Hashable, Sendable, Codable {
    package var source: String
    package var expression: AudienceExpression

    package init(source: String, expression: AudienceExpression) {
        self.source = source
        self.expression = expression
    }

    package static let everyone = Audience(source: "", expression: .everyone)
}
