import GRDB
package import Model
package import Store

/// What became of a run that has nothing left to do, kept with it: a few rows instead of one for each device.
struct OutcomeSummary {
    private let db: Database
    private let run: Int64

    init(_ db: Database, _ run: Int64) {
        self.db = db
        self.run = run
    }

    /// Nil until it was written.
    func tally() throws -> DeliveryTally? {
        let totals = try Row.fetchOne(
            db,
            sql:
                "SELECT requests, possible_duplicates, outcomes_digest FROM run WHERE id = :run AND requests IS NOT NULL",
            arguments: ["run": run])
        guard let totals else { return nil }
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT environment, variant, locale_index, state, status, reason, deliveries
                FROM outcome_summary WHERE run_id = :run
                """, arguments: ["run": run])
        let counts = rows.map { row in
            let group = DeliveryTally.Group(
                environment: PushEnvironment(code: row[0]), variant: row[1], localeIndex: row[2],
                state: DeliveryState(code: row[3]), isLeased: false, status: row[4], reason: row[5])
            return (group, row[6] as Int)
        }
        return DeliveryTally(
            counts: Dictionary(counts, uniquingKeysWith: +), attempts: totals[0], possibleDuplicates: totals[1],
            digest: totals[2], breakdown: try breakdown())
    }

    /// `nil` if an earlier version wrote the summary.
    private func breakdown() throws -> DeliveryBreakdown? {
        let rows = try Row.fetchAll(
            db, sql: "SELECT dimension, value, state, deliveries FROM outcome_slice WHERE run_id = :run",
            arguments: ["run": run])
        guard !rows.isEmpty else { return nil }
        return rows.reduce(into: DeliveryBreakdown()) { breakdown, row in
            guard let dimension = DeliveryBreakdown.Dimension(rawValue: row[0]) else { return }
            breakdown.add(row[3], .init(dimension, row[1], DeliveryState(code: row[2])))
        }
    }

    /// When the rows it stands for were deleted, or began to be.
    func prunedAt() throws -> Timestamp? {
        Timestamp(
            stored: try Int64.fetchOne(
                db, sql: "SELECT outcomes_pruned_at FROM run WHERE id = :run", arguments: ["run": run]))
    }

    /// Whether the deliveries can change no more and have no summary yet.
    func isDue() throws -> Bool {
        try RunRow.progress(db, run).isSettled && tally() == nil
    }

    /// Takes it back: deliveries it counted wait again.
    func drop() throws {
        let arguments: StatementArguments = ["run": run]
        try db.execute(sql: "DELETE FROM outcome_summary WHERE run_id = :run", arguments: arguments)
        try db.execute(sql: "DELETE FROM outcome_slice WHERE run_id = :run", arguments: arguments)
        try db.execute(
            sql: """
                UPDATE run SET requests = NULL, possible_duplicates = NULL, outcomes_digest = NULL WHERE id = :run
                """, arguments: arguments)
    }

    /// Writes it, unless it says anything else than the account: then the rows are needed to find out why.
    func write(_ tally: DeliveryTally) throws {
        guard try isDue(), try tally.total == RunRow.progress(db, run).counts else { return }
        for (group, count) in tally.counts {
            try db.cachedStatement(
                sql: """
                    INSERT INTO outcome_summary (
                        run_id, environment, variant, locale_index, state, status, reason, deliveries
                    ) VALUES (:run, :environment, :variant, :locale, :state, :status, :reason, :count)
                    """
            ).execute(arguments: [
                "run": run, "environment": group.environment.code, "variant": group.variant,
                "locale": group.localeIndex, "state": group.state.code, "status": group.status,
                "reason": group.reason, "count": count,
            ])
        }
        for (key, count) in tally.breakdown?.counts ?? [:] {
            try db.cachedStatement(
                sql: """
                    INSERT INTO outcome_slice (run_id, dimension, value, state, deliveries)
                    VALUES (:run, :dimension, :value, :state, :count)
                    """
            ).execute(arguments: [
                "run": run, "dimension": key.dimension.rawValue, "value": key.value, "state": key.state.code,
                "count": count,
            ])
        }
        try db.execute(
            sql: """
                UPDATE run SET requests = :requests, possible_duplicates = :duplicates, outcomes_digest = :digest
                WHERE id = :run
                """,
            arguments: [
                "run": run, "requests": tally.attempts, "duplicates": tally.possibleDuplicates, "digest": tally.digest,
            ])
    }
}

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
