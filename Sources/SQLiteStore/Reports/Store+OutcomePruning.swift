import GRDB
package import Store
package import Model

extension SQLiteFileStore {
    /// Keeps the report of a run that has nothing left to do with the run itself, so that no later one reads its
    /// deliveries. Does nothing while deliveries may still change, and when it was done before.
    package func summarizeOutcomes(run: Int64) async throws {
        let tally = try await read { db in
            try OutcomeSummary(db, run).isDue() ? DeliveryTally(db, run: run) : nil
        }
        guard let tally else { return }
        try await write { db in try OutcomeSummary(db, run).write(tally) }
    }

    /// Deletes the outcomes by device of the runs that were over before `moment`. What their reports say stays, kept
    /// as a summary of some rows per run; the devices' histories lose these runs. With `dryRun` they are only counted.
    ///
    /// Works in batches, each a transaction, so that senders go on beside it, memory stays flat, and what was stopped
    /// in the middle goes on with the next call. The space is used again by what is written next; ``shrink()`` gives it
    /// back to the disk. Unless it is a dry run, an event says who pruned how many.
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
        if !dryRun, counts.runs > 0 {
            let detail = "\(counts.deliveries) of \(counts.runs) runs"
            try await recordEvent(kind: "outcomes_pruned", run: nil, actor: actor, detail: detail, now: now)
        }
        return counts
    }

    /// Rewrites the file without its free space. Needs about as much disk again for the while, and keeps every writer
    /// waiting: for quiet hours only.
    package func shrink() async throws {
        do {
            try await pool.vacuum()
            _ = try await pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
        } catch {
            throw StoreError.translated(error, path: path)
        }
    }

    package func size() async throws -> StoreSize {
        try await read { db in
            let pageBytes = try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0
            let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            let free = try Int.fetchOne(db, sql: "PRAGMA freelist_count") ?? 0
            return StoreSize(bytes: pages * pageBytes, freeBytes: free * pageBytes)
        }
    }

    /// Also those of which a part was deleted before.
    private func runsToPrune(finishedBefore moment: Timestamp) async throws -> [(run: Int64, deliveries: Int)] {
        try await read { db in
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
            return db.changesCount > 0
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
                            ), 9223372036854775807)
                        """, arguments: ["run": run, "rows": StoreLimits.outcomesPruneBatchRows - 1])
                return db.changesCount
            }
            guard count > 0 else { return deleted }
            deleted += count
        }
    }
}
