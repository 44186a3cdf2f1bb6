package import Model
package import Store

/// What became of a run that has nothing left to do, kept with it: a few rows instead of one for each device.
struct OutcomeSummary {
    private let db: PostgresSession
    private let run: Int64

    init(_ db: PostgresSession, _ run: Int64) {
        self.db = db
        self.run = run
    }

    /// Nil until it was written.
    func tally() throws -> DeliveryTally? {
        let totals = try db.first(
            """
            SELECT requests, possible_duplicates, outcomes_digest FROM run WHERE id = $1 AND requests IS NOT NULL
            """, run
        ) { (try $0.int(0), try $0.int(1), try $0.int64OrNil(2)) }
        guard let (requests, duplicates, digest) = totals else { return nil }
        let counts = try db.all(
            """
            SELECT environment, variant, locale_index, state, status, reason, deliveries
            FROM outcome_summary WHERE run_id = $1
            """, run
        ) { row in
            let group = DeliveryTally.Group(
                environment: PushEnvironment(code: try row.int64(0)), variant: try row.intOrNil(1),
                localeIndex: try row.intOrNil(2), state: DeliveryState(code: try row.int64(3)), isLeased: false,
                status: try row.int(4), reason: try row.textOrNil(5))
            return (group, try row.int(6))
        }
        return DeliveryTally(
            counts: Dictionary(counts, uniquingKeysWith: +), attempts: requests, possibleDuplicates: duplicates,
            digest: digest, breakdown: try breakdown())
    }

    /// `nil` if an earlier version wrote the summary.
    private func breakdown() throws -> DeliveryBreakdown? {
        let rows = try db.all("SELECT dimension, value, state, deliveries FROM outcome_slice WHERE run_id = $1", run) {
            (try $0.text(0), try $0.text(1), DeliveryState(code: try $0.int64(2)), try $0.int(3))
        }
        guard !rows.isEmpty else { return nil }
        return rows.reduce(into: DeliveryBreakdown()) { breakdown, row in
            guard let dimension = DeliveryBreakdown.Dimension(rawValue: row.0) else { return }
            breakdown.add(row.3, .init(dimension, row.1, row.2))
        }
    }

    /// When the rows it stands for were dropped.
    func prunedAt() throws -> Timestamp? {
        try db.first("SELECT outcomes_pruned_at FROM run WHERE id = $1", run) { try $0.timestampOrNil(0) } ?? nil
    }

    /// Whether the deliveries can change no more and have no summary yet.
    func isDue() throws -> Bool {
        try RunRow.progress(db, run).isSettled && tally() == nil
    }

    /// Takes it back: deliveries it counted wait again.
    func drop() throws {
        try db.execute("DELETE FROM outcome_summary WHERE run_id = $1", run)
        try db.execute("DELETE FROM outcome_slice WHERE run_id = $1", run)
        try db.execute(
            "UPDATE run SET requests = NULL, possible_duplicates = NULL, outcomes_digest = NULL WHERE id = $1", run)
    }

    /// Writes it, unless it says anything else than the account: then the rows are needed to find out why.
    func write(_ tally: DeliveryTally) throws {
        try db.execute("SELECT 1 FROM run WHERE id = $1 FOR NO KEY UPDATE", run)
        guard try isDue(), try tally.total == RunRow.progress(db, run).counts else { return }
        let groups = Array(tally.counts)
        try db.execute(
            """
            INSERT INTO outcome_summary (
                run_id, environment, variant, locale_index, state, status, reason, deliveries
            ) SELECT $1, * FROM unnest(
                $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::bigint[])
            """, run, groups.map(\.key.environment.code), groups.map(\.key.variant), groups.map(\.key.localeIndex),
            groups.map(\.key.state.code), groups.map(\.key.status), groups.map(\.key.reason), groups.map(\.value))
        let slices = Array(tally.breakdown?.counts ?? [:])
        try db.execute(
            """
            INSERT INTO outcome_slice (run_id, dimension, value, state, deliveries)
            SELECT $1, * FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[])
            """, run, slices.map(\.key.dimension.rawValue), slices.map(\.key.value), slices.map(\.key.state.code),
            slices.map(\.value))
        try db.execute(
            "UPDATE run SET requests = $2, possible_duplicates = $3, outcomes_digest = $4 WHERE id = $1", run,
            tally.attempts, tally.possibleDuplicates, tally.digest)
    }
}

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
