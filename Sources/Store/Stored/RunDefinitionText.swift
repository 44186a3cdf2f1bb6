package import Model

/// A run's definition as stored: JSON with sorted keys, and a hash that shows later changes. FNV-1a is enough, because
/// it guards against damage and edits by hand, not against an attacker with write access to the store.
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
    /// The key by which background pushes replace each other while they wait for the silent budget: the campaign's own
    /// key, or its template. A campaign's own key contains no blank, so it differs from the key of any template. `nil`
    /// if pushes do not replace each other.
    package var coalesceKey: String? {
        guard pushType == .background else { return nil }
        return switch collapse {
        case .key(let key): key
        case .template: "template \(template)"
        case .run, .none: nil
        }
    }
}

/// The stored values of `segment.kind`.
package enum StoredSegmentKind: Int64 {
    /// The members are in `segment_member`.
    case `static` = 0
    /// The members are the devices that the expression selects.
    case dynamic = 1
}

/// The stored form of a dynamic segment's expression.
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
