import Model
import Store

/// The devices that an `audience_sql` selects.
struct AnalystAudience {
    private let db: PostgresSession

    init(_ db: PostgresSession) { self.db = db }

    /// Throws `StoreError.audienceSQL`.
    func devices(_ sql: String, now: Timestamp) throws -> [Int64] {
        throw StoreError.audienceSQL(.refused("a statement of one's own on PostgreSQL"))
    }
}
