import Foundation
import GRDB
import Store
import Model

/// A segment as the catalog has it.
struct SegmentEntry {
    var id: Int64
    /// Nil: its devices stand in `segment_member`.
    var expression: AudienceExpression?
}

/// The expression of a dynamic segment as it is kept.
enum SegmentExpressionText {
    static func json(_ expression: AudienceExpression) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(expression), as: UTF8.self)
    }

    static func expression(_ json: String, of segment: String) throws -> AudienceExpression {
        do {
            return try JSONDecoder().decode(AudienceExpression.self, from: Data(json.utf8))
        } catch {
            throw DatabaseError(
                resultCode: .SQLITE_CORRUPT, message: "the expression of segment \(segment) cannot be read: \(error)")
        }
    }
}
