package import Model
package import Store

/// The stored summary of a run that has no work left. It has a few rows instead of one for each device.
package struct OutcomeSummary<Session: SQLSession> {
    private let db: Session
    private let run: Int64

    package init(_ db: Session, _ run: Int64) {
        self.db = db
        self.run = run
    }

    /// Returns `nil` until the summary is written.
    package func tally() throws -> DeliveryTally? {
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

    /// Returns `nil` if an earlier version wrote the summary.
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

    /// Returns the time when the summarised rows were dropped, or `nil` if they were not.
    package func prunedAt() throws -> Timestamp? {
        try db.first("SELECT outcomes_pruned_at FROM run WHERE id = $1", run) { try $0.timestampOrNil(0) } ?? nil
    }

    /// Returns whether the deliveries can no longer change and have no summary yet.
    package func isDue() throws -> Bool {
        try RunProgress(db, run: run).isSettled && tally() == nil
    }

    /// Deletes the summary. Call it when deliveries in it become pending again.
    package func drop() throws {
        try db.execute("DELETE FROM outcome_summary WHERE run_id = $1", run)
        try db.execute("DELETE FROM outcome_slice WHERE run_id = $1", run)
        try db.execute(
            "UPDATE run SET requests = NULL, possible_duplicates = NULL, outcomes_digest = NULL WHERE id = $1", run)
    }

    /// Writes the summary. Does nothing if the summary differs from the run's counts, because the rows are then
    /// needed to find the reason.
    package func write(_ tally: DeliveryTally) throws {
        try db.execute("SELECT 1 FROM run WHERE id = $1\(Session.dialect.lock)", run)
        guard try isDue(), try tally.total == RunProgress(db, run: run).counts else { return }
        try db.execute(
            """
            INSERT INTO outcome_summary (
                run_id, environment, variant, locale_index, state, status, reason, deliveries
            ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            """,
            each: tally.counts.map { group, count in
                [
                    run, group.environment.code, group.variant, group.localeIndex, group.state.code, group.status,
                    group.reason, count,
                ]
            })
        try db.execute(
            "INSERT INTO outcome_slice (run_id, dimension, value, state, deliveries) VALUES ($1, $2, $3, $4, $5)",
            each: (tally.breakdown?.counts ?? [:]).map { key, count in
                [run, key.dimension.rawValue, key.value, key.state.code, count]
            })
        try db.execute(
            "UPDATE run SET requests = $2, possible_duplicates = $3, outcomes_digest = $4 WHERE id = $1", run,
            tally.attempts, tally.possibleDuplicates, tally.digest)
    }
}

extension RelationalStore {
    package func summarizeOutcomes(run: Int64) async throws {
        let tally = try await snapshot(.expensive) { db in
            try OutcomeSummary(db, run).isDue() ? DeliveryTally(db, run: run) : nil
        }
        guard let tally else { return }
        try await transaction(.quick) { db in try OutcomeSummary(db, run).write(tally) }
    }
}
