package import Model

/// A run's definition as it is kept: JSON with sorted keys, and a hash that shows later changes. FNV-1a is enough for
/// that: it guards against damage and hand edits, not against an attacker who can write the store anyway.
package struct RunDefinitionText {
    package let json: String
    package let hash: Int64

    package init(_ definition: RunDefinition) throws {
        self.init(json: try StoredJSON.text(definition))
    }

    package init(json: String) {
        self.json = json
        self.hash = Int64(bitPattern: FNV1a.hash(json))
    }

    package func definition() throws -> RunDefinition {
        try StoredJSON.value(json)
    }
}

extension Campaign {
    /// Background pushes with the same key replace each other while they wait for the silent budget: the campaign's own key,
    /// or its template. A written key holds no blank, so that it differs from any template's.
    package var coalesceKey: String? {
        guard pushType == .background else { return nil }
        return switch collapse {
        case .key(let key): key
        case .template: "template \(template)"
        case .run, .none: nil
        }
    }
}

/// `segment.kind` as stored.
package enum StoredSegmentKind: Int64 {
    /// Its devices stand in `segment_member`.
    case `static` = 0
    /// Whoever its expression selects.
    case dynamic = 1
}

/// The expression of a dynamic segment as it is kept.
package enum SegmentExpressionText {
    package static func json(_ expression: AudienceExpression) throws -> String {
        try StoredJSON.text(expression)
    }

    package static func expression(_ json: String, of segment: String) throws(UnreadableValue) -> AudienceExpression {
        do {
            return try StoredJSON.value(json)
        } catch {
            throw UnreadableValue("the expression of segment \(segment) cannot be read: \(DecodingFault(error))")
        }
    }
}
