package import Model
import RelationalStore
import Store

extension PostgresDatabase {
    /// Drops the table with a run's outcomes in one transaction, which is fast for any number of them.
    package func dropOutcomes(of run: Int64, now: Timestamp) async throws -> Int? {
        do {
            return try await write(.durable) { db in
                let audience = try db.first(
                    """
                    UPDATE run SET outcomes_pruned_at = $2
                    WHERE id = $1 AND requests IS NOT NULL AND outcomes_pruned_at IS NULL RETURNING audience
                    """, run, now
                ) { try $0.int(0) }
                guard let audience else { return nil }
                // A cancelled run may have left some entries.
                try FoundGone(db, run: run).forget()
                try DeliveryTable(run: run).drop(db)
                return audience
            }
        } catch StoreError.busy {
            return nil
        }
    }
}
