package import Model

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

    /// Throws what `damage` makes of a sentence about what cannot be read.
    package static func expression(
        _ json: String, of segment: String, damage: (String) -> any Error
    ) throws -> AudienceExpression {
        do {
            return try StoredJSON.value(json)
        } catch {
            throw damage("the expression of segment \(segment) cannot be read: \(DecodingFault(error))")
        }
    }
}
