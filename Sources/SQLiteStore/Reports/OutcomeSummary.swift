import GRDB
import Model
import Store

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
            db, sql: "SELECT requests, possible_duplicates FROM run WHERE id = :run AND requests IS NOT NULL",
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
            counts: Dictionary(counts, uniquingKeysWith: +), attempts: totals[0], possibleDuplicates: totals[1])
    }

    /// When the rows it stands for were deleted, or began to be.
    func prunedAt() throws -> Timestamp? {
        Timestamp(
            stored: try Int64.fetchOne(
                db, sql: "SELECT outcomes_pruned_at FROM run WHERE id = :run", arguments: ["run": run]))
    }

    /// Whether the deliveries can change no more and have no summary yet.
    func isDue() throws -> Bool {
        let found = try RunRow.require(db, run)
        let isOver = found.state.isFinal || found.isFrozen && found.counts.pending == 0
        return try isOver && found.counts.leased == 0 && tally() == nil
    }

    /// Writes it, unless it says anything else than the account: then the rows are needed to find out why.
    func write(_ tally: DeliveryTally) throws {
        guard try isDue(), try tally.total == RunRow.require(db, run).counts else { return }
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
        try db.execute(
            sql: "UPDATE run SET requests = :requests, possible_duplicates = :duplicates WHERE id = :run",
            arguments: ["run": run, "requests": tally.attempts, "duplicates": tally.possibleDuplicates])
    }
}
