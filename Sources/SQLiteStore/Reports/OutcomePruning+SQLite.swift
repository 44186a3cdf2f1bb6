import GRDB
package import Model
package import Store

extension SQLiteFileStore {
    package func pruneOutcomes(
        finishedBefore moment: Timestamp, dryRun: Bool, now: Timestamp, by actor: Actor
    ) async throws -> OutcomePruneCounts {
        var counts = OutcomePruneCounts()
        for (run, deliveries) in try await runsToPrune(finishedBefore: moment) {
            try Task.checkCancellation()
            if dryRun {
                counts.runs += 1
                counts.deliveries += deliveries
                continue
            }
            try await summarizeOutcomes(run: run)
            guard try await markPruned(run, now: now) else {
                counts.kept += 1
                continue
            }
            counts.runs += 1
            counts.deliveries += try await deleteOutcomes(run)
        }
        if !dryRun { try await write { db in try CapLedger(db).prune(at: now) } }
        if !dryRun, counts.runs > 0 {
            let detail = "\(counts.deliveries) of \(counts.runs.counted("run"))"
            try await recordEvent(kind: .outcomesPruned, run: nil, actor: actor, detail: detail, now: now)
        }
        return counts
    }

    /// Also those of which a part was deleted before.
    private func runsToPrune(finishedBefore moment: Timestamp) async throws -> [(run: Int64, deliveries: Int)] {
        try await read(.short) { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT id, audience FROM run
                    WHERE finished_at < :moment AND owner IS NULL
                        AND EXISTS (SELECT 1 FROM delivery WHERE delivery.run_id = run.id)
                    ORDER BY id
                    """, arguments: ["moment": moment.milliseconds]
            ).map { ($0[0], $0[1]) }
        }
    }

    /// False when there is no summary to stand for the rows.
    private func markPruned(_ run: Int64, now: Timestamp) async throws -> Bool {
        try await write { db in
            try db.execute(
                sql: """
                    UPDATE run SET outcomes_pruned_at = coalesce(outcomes_pruned_at, :now)
                    WHERE id = :run AND requests IS NOT NULL
                    """, arguments: ["run": run, "now": now.milliseconds])
            guard db.changesCount > 0 else { return false }
            // Of a run that was cancelled.
            try FoundGone(db, run: run).forget()
            return true
        }
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
