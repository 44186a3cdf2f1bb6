package import Model
import RelationalStore
package import Store

extension PostgresDatabase {
    /// Drops the table with a run's outcomes in one transaction, which is fast for any number of them.
    package func dropOutcomes(of run: Int64, now: Timestamp) async throws -> OutcomeDrop {
        do {
            return try await write(.durable) { db in
                let found = try db.first(
                    """
                    SELECT requests IS NOT NULL, outcomes_pruned_at IS NULL, audience FROM run WHERE id = $1
                    FOR NO KEY UPDATE
                    """, run
                ) { (isSummarized: try $0.bool(0), isWhole: try $0.bool(1), audience: try $0.int(2)) }
                guard let found, found.isWhole else { return .droppedBefore }
                guard found.isSummarized else { return .unbalanced }
                try db.execute("UPDATE run SET outcomes_pruned_at = $2 WHERE id = $1", run, now)
                // A cancelled run may have left some entries.
                try FoundGone(db, run: run).forget()
                try DeliveryTable(run: run).drop(db)
                return .dropped(deliveries: found.audience)
            }
        } catch StoreError.busy {
            return .inUse
        }
    }
}
