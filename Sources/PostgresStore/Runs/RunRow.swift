import Model
import Store
import RelationalStore

/// Reads and changes rows of `run`.
enum RunRow {
    private static let columns = """
        id, campaign, occurrence, definition, state, state_reason, is_frozen, is_test, is_refused, created_at, started_at,
        finished_at, owner, heartbeat_at, paused_by, halt, halted_at, audience, pending, leased, accepted, rejected,
        unknown, suppressed
        """
    /// Where the account begins in ``columns``.
    private static let account = 17

    /// The rows of a list. `clauses` is one of our own texts, with `$1` and on for its values.
    static func list(
        _ db: PostgresSession, _ clauses: String, _ values: any PostgresValue...
    ) throws -> [ListedRun] {
        try list(db, clauses, values: values)
    }

    private static func list(
        _ db: PostgresSession, _ clauses: String, values: [any PostgresValue]
    ) throws -> [ListedRun] {
        try db.rows("SELECT \(columns) FROM run \(clauses)", values: values).map(listed)
    }

    /// The first that can be read. `clauses` ends with a `LIMIT` that has the parameter behind `values`.
    static func first(_ db: PostgresSession, _ clauses: String, _ values: any PostgresValue...) throws -> Run? {
        try ListedRun.first { limit in try list(db, clauses, values: values + [limit]) }
    }

    static func find(_ db: PostgresSession, _ id: Int64) throws -> Run? {
        try list(db, "WHERE id = $1", id).first?.get()
    }

    static func require(_ db: PostgresSession, _ id: Int64) throws -> Run {
        guard let run = try find(db, id) else { throw StoreError.noSuchRun(id) }
        return run
    }

    /// The new run's number; nil when the occurrence has a run already: then nothing is changed.
    static func insert(
        _ campaign: Campaign, _ text: RunDefinitionText, occurrence: String, isTest: Bool, now: Timestamp,
        _ db: PostgresSession
    ) throws -> Int64? {
        // The sequence gives a number away for each conflict: without this check, numbers of runs jump.
        let known = try db.first(
            "SELECT id FROM run WHERE campaign = $1 AND occurrence = $2", campaign.name, occurrence
        ) { try $0.int64(0) }
        guard known == nil else { return nil }
        let split = CampaignSplit(campaign)
        let run = try db.first(
            """
            INSERT INTO run (
                campaign, occurrence, state, is_test, created_at, holdout_seed, variant_seed, definition_hash, definition,
                coalesce_key
            ) VALUES ($1, $2, '\(RunState.scheduled.rawValue)', $3, $4, $5, $6, $7, $8, $9)
            ON CONFLICT (campaign, occurrence) DO NOTHING RETURNING id
            """, campaign.name, occurrence, isTest, now, split.holdoutSeed, split.variantSeed, text.hash, text.json,
            isTest ? nil : campaign.coalesceKey
        ) { try $0.int64(0) }
        if let run {
            try DeliveryTable(run: run).make(db)
            if !isTest, let stages = campaign.stages { try PostgresStageBook.make(stages, run: run, db) }
        }
        return run
    }

    /// Adds signed differences to the account, and to the timeline what has come to an end by them; returns the new
    /// account. Whatever changes an account does it here, so that the two say the same. To be called last: from here to the
    /// end of the transaction every other change of the run waits.
    @discardableResult
    static func add(
        _ change: DeliveryCounts, _ attempts: SettledAttempts = SettledAttempts(), to run: Int64, at now: Timestamp,
        _ db: PostgresSession
    ) throws -> DeliveryCounts {
        let row = try db.rows(
            """
            UPDATE run SET
                audience = audience + $2, pending = pending + $3, leased = leased + $4, accepted = accepted + $5,
                rejected = rejected + $6, unknown = unknown + $7, suppressed = suppressed + $8,
                halted_at = CASE WHEN $5 + $6 > 0 THEN NULL ELSE halted_at END
            WHERE id = $1
            RETURNING audience, pending, leased, accepted, rejected, unknown, suppressed
            """, run, change.audience, change.pending, change.leased, change.accepted, change.rejected, change.unknown,
            change.suppressed
        ).first
        guard let row else { throw StoreError.noSuchRun(run) }
        try TimelineRow.add(change, attempts, to: run, at: now, db)
        return try counts(row, from: 0)
    }

    private static func counts(_ row: PostgresRow, from column: Int) throws -> DeliveryCounts {
        var counts = DeliveryCounts()
        counts.audience = try row.int(column)
        counts.pending = try row.int(column + 1)
        counts.leased = try row.int(column + 2)
        counts.accepted = try row.int(column + 3)
        counts.rejected = try row.int(column + 4)
        counts.unknown = try row.int(column + 5)
        counts.suppressed = try row.int(column + 6)
        return counts
    }

    private static func listed(_ row: PostgresRow) throws -> ListedRun {
        try ListedRun(
            run: try row.int64(0), campaign: try row.text(1), occurrence: try row.text(2), state: try row.text(4)
        ) { state in try run(row, state) }
    }

    private static func run(_ row: PostgresRow, _ state: RunState) throws -> Run {
        Run(
            id: try row.int64(0), campaign: try row.text(1), occurrence: try row.text(2),
            definition: try RunDefinitionText(json: try row.text(3)).definition(), state: state,
            stateReason: try row.textOrNil(5),
            counts: try counts(row, from: account), isFrozen: try row.bool(6), isTest: try row.bool(7),
            isRefused: try row.bool(8), createdAt: try row.timestamp(9), startedAt: try row.timestampOrNil(10),
            finishedAt: try row.timestampOrNil(11), owner: try row.textOrNil(12),
            heartbeatAt: try row.timestampOrNil(13),
            pausedBy: try row.textOrNil(14), halt: try row.textOrNil(15).flatMap(RunHalt.init),
            haltedAt: try row.timestampOrNil(16))
    }
}

/// Of a run, see ``Store/ReachLimits``.
extension ReachLimits {
    /// Nil: nobody has counted it.
    static func of(_ run: Int64, _ db: PostgresSession) throws -> ReachLimits? {
        try db.first(
            "SELECT reach, reach_most, reach_bound, signed_segments FROM run WHERE id = $1 AND reach IS NOT NULL", run
        ) { row in
            ReachLimits(
                reach: try row.int(0), most: try row.int64OrNil(1).map { Int($0) },
                bound: try row.int64OrNil(2).map { Int($0) },
                segments: try row.textOrNil(3).map { try StoredJSON.value($0) })
        }
    }

    func write(to run: Int64, _ db: PostgresSession) throws {
        try db.execute(
            "UPDATE run SET reach = $2, reach_most = $3, reach_bound = $4, signed_segments = $5 WHERE id = $1", run,
            Int64(reach), most.map { Int64($0) }, bound.map { Int64($0) },
            try segments.map { try StoredJSON.text($0) })
    }
}
