import GRDB
package import Model
import RelationalStore
package import Store

extension SQLiteFileStore {
    package func dropOutcomes(of run: Int64, now: Timestamp) async throws -> OutcomeDrop {
        let isMarked = try await write { db in
            let marked = try db.execute(
                """
                UPDATE run SET outcomes_pruned_at = coalesce(outcomes_pruned_at, $2) WHERE id = $1 AND requests IS NOT NULL
                """, run, now)
            guard marked > 0 else { return false }
            // A cancelled run may have left some rows.
            try FoundGone(db, run: run).forget()
            return true
        }
        return isMarked ? .dropped(deliveries: try await deleteOutcomes(run)) : .unbalanced
    }

    private func deleteOutcomes(_ run: Int64) async throws -> Int {
        var deleted = 0
        while true {
            try Task.checkCancellation()
            let count = try await write { db in
                try db.execute(
                    sql: """
                        DELETE FROM delivery WHERE run_id = :run AND device_id <= coalesce(
                            (
                                SELECT device_id FROM delivery WHERE run_id = :run
                                ORDER BY device_id LIMIT 1 OFFSET :rows
                            ), \(Int64.max))
                        """, arguments: ["run": run, "rows": StoreLimits.outcomesPruneBatchRows - 1])
                return db.changesCount
            }
            guard count > 0 else { return deleted }
            deleted += count
        }
    }
}
