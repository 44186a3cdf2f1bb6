package import Model
package import Store
import RelationalStore

extension PostgresDatabase {
    /// A run's outcomes are dropped with its partition, in one transaction however many they are.
    package func pruneOutcomes(
        finishedBefore moment: Timestamp, dryRun: Bool, now: Timestamp, by actor: Actor
    ) async throws -> OutcomePruneCounts {
        var counts = OutcomePruneCounts()
        for (run, deliveries) in try await runsToPrune(finishedBefore: moment) {
            try Task.checkCancellation()
            if dryRun {
                counts.runs += deliveries > 0 ? 1 : 0
                counts.deliveries += deliveries
                continue
            }
            try await summarizeOutcomes(run: run)
            guard try await dropOutcomes(run, now: now) else {
                counts.kept += 1
                continue
            }
            guard deliveries > 0 else { continue }
            counts.runs += 1
            counts.deliveries += deliveries
        }
        if !dryRun { try await write(.durable) { db in try CapLedger(db).prune(at: now) } }
        if !dryRun, counts.runs > 0 {
            let detail = "\(counts.deliveries) of \(counts.runs.counted("run"))"
            try await recordEvent(kind: .outcomesPruned, run: nil, actor: actor, detail: detail, files: [:], now: now)
        }
        return counts
    }

    private func runsToPrune(finishedBefore moment: Timestamp) async throws -> [(run: Int64, deliveries: Int)] {
        try await read(.short) { db in
            try db.all(
                """
                SELECT id, audience FROM run
                WHERE finished_at < $1 AND owner IS NULL AND outcomes_pruned_at IS NULL ORDER BY id
                """, moment
            ) { (try $0.int64(0), try $0.int(1)) }
        }
    }

    /// False when there is no summary to stand for the rows, or somebody is reading them.
    private func dropOutcomes(_ run: Int64, now: Timestamp) async throws -> Bool {
        do {
            return try await write(.durable) { db in
                let marked = try db.execute(
                    """
                    UPDATE run SET outcomes_pruned_at = $2
                    WHERE id = $1 AND requests IS NOT NULL AND outcomes_pruned_at IS NULL
                    """, run, now)
                if marked > 0 {
                    // Of a run that was cancelled.
                    try FoundGone(db, run: run).forget()
                    try DeliveryTable(run: run).drop(db)
                }
                return marked > 0
            }
        } catch StoreError.busy {
            return false
        }
    }
}
