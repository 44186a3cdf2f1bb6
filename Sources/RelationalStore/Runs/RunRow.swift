package import Model
package import Store

/// Reads and changes rows of `run`.
package enum RunRow {
    private static let account = "audience, pending, leased, accepted, rejected, unknown, suppressed"
    private static let columns = """
        id, campaign, occurrence, definition, state, state_reason, is_frozen, is_test, is_refused, created_at, started_at,
        finished_at, owner, heartbeat_at, paused_by, halt, halted_at, \(account)
        """
    /// The index of the first count in ``columns``.
    private static let accountStart = 17

    /// Returns the rows of a list. `clauses` is a constant text of this code, with `$1`, `$2` and so on for its
    /// values.
    package static func list(
        _ db: some SQLSession, _ clauses: String, _ values: any SQLValue...
    ) throws -> [ListedRun] {
        try list(db, clauses, values: values)
    }

    private static func list(
        _ db: some SQLSession, _ clauses: String, values: [any SQLValue]
    ) throws -> [ListedRun] {
        try db.all("SELECT \(columns) FROM run \(clauses)", values: values, read: listed)
    }

    /// Returns the first run that can be read. `clauses` ends with a `LIMIT` whose parameter follows `values`.
    package static func first(_ db: some SQLSession, _ clauses: String, _ values: any SQLValue...) throws -> Run? {
        try ListedRun.first { limit in try list(db, clauses, values: values + [limit]) }
    }

    package static func find(_ db: some SQLSession, _ id: Int64) throws -> Run? {
        try list(db, "WHERE id = $1", id).first?.get()
    }

    package static func find(_ db: some SQLSession, campaign: String, occurrence: String) throws -> Run? {
        try list(db, "WHERE campaign = $1 AND occurrence = $2", campaign, occurrence).first?.get()
    }

    package static func require(_ db: some SQLSession, _ id: Int64) throws -> Run {
        guard let run = try find(db, id) else { throw StoreError.noSuchRun(id) }
        return run
    }

    /// Inserts a run and returns its id. If the occurrence already has a run, returns `nil` and changes nothing.
    package static func insert(
        _ campaign: Campaign, _ text: RunDefinitionText, occurrence: String, isTest: Bool, now: Timestamp,
        _ db: some SQLSession
    ) throws -> Int64? {
        // An INSERT that conflicts uses up an id. This check prevents such gaps between the ids of runs.
        let known = try db.first(
            "SELECT id FROM run WHERE campaign = $1 AND occurrence = $2", campaign.name, occurrence
        ) { try $0.int64(0) }
        guard known == nil else { return nil }
        let split = CampaignSplit(campaign)
        let made = try db.first(
            """
            INSERT INTO run (
                campaign, occurrence, state, is_test, created_at, holdout_seed, variant_seed, definition_hash, definition,
                coalesce_key, has_timeline
            ) VALUES ($1, $2, '\(RunState.scheduled.rawValue)', $3, $4, $5, $6, $7, $8, $9, true)
            ON CONFLICT (campaign, occurrence) DO NOTHING RETURNING id
            """, campaign.name, occurrence, isTest, now, split.holdoutSeed, split.variantSeed, text.hash, text.json,
            isTest ? nil : campaign.coalesceKey
        ) { try $0.int64(0) }
        guard let run = made else { return nil }
        try db.makeDeliveries(of: run)
        if !isTest, let stages = campaign.stages { try RunStages.make(stages, run: run, db) }
        return run
    }

    /// Adds signed differences to the counts of a run, and the ended deliveries to its timeline. Returns the new
    /// counts. Every change of the counts goes through this function, so that counts and timeline agree. A change
    /// that includes a response of APNs ends a series of automatic pauses.
    ///
    /// - Parameter replaced: the deliveries that are no longer suppressed, as the change says.
    ///
    /// Call this last, because every other change of the run then waits until the end of the transaction.
    @discardableResult
    package static func add(
        _ change: DeliveryCounts, _ attempts: SettledAttempts = SettledAttempts(),
        replacing replaced: ReplacedDeliveries = .none, to run: Int64, at now: Timestamp, _ db: some SQLSession
    ) throws -> DeliveryCounts {
        let counts = try db.first(
            """
            UPDATE run SET
                audience = audience + $2, pending = pending + $3, leased = leased + $4, accepted = accepted + $5,
                rejected = rejected + $6, unknown = unknown + $7, suppressed = suppressed + $8,
                halted_at = CASE WHEN $5 + $6 > 0 THEN NULL ELSE halted_at END
            WHERE id = $1 RETURNING \(account)
            """, run, change.audience, change.pending, change.leased, change.accepted, change.rejected, change.unknown,
            change.suppressed
        ) { try DeliveryCounts($0, from: 0) }
        guard let counts else { throw StoreError.noSuchRun(run) }
        try TimelineRow.add(change, attempts, replacing: replaced, to: run, at: now, db)
        return counts
    }

    private static func listed(_ row: some SQLFields) throws -> ListedRun {
        try ListedRun(
            run: try row.int64(0), campaign: try row.text(1), occurrence: try row.text(2), state: try row.text(4)
        ) { state in try run(row, state) }
    }

    private static func run(_ row: some SQLFields, _ state: RunState) throws -> Run {
        Run(
            id: try row.int64(0), campaign: try row.text(1), occurrence: try row.text(2),
            definition: try definition(try row.text(3)), state: state, stateReason: try row.textOrNil(5),
            counts: try DeliveryCounts(row, from: accountStart), isFrozen: try row.bool(6), isTest: try row.bool(7),
            isRefused: try row.bool(8), createdAt: try row.timestamp(9), startedAt: try row.timestampOrNil(10),
            finishedAt: try row.timestampOrNil(11), owner: try row.textOrNil(12),
            heartbeatAt: try row.timestampOrNil(13), pausedBy: try row.textOrNil(14),
            halt: try row.textOrNil(15).flatMap(RunHalt.init), haltedAt: try row.timestampOrNil(16))
    }

    /// The decoded definitions. Pages and heartbeats read the same few runs repeatedly, and decoding is nearly all of a
    /// row's cost.
    private static let definitions = TextMemo<RunDefinition>()

    private static func definition(_ json: String) throws -> RunDefinition {
        try definitions.value(of: json) { try RunDefinitionText(json: json).definition() }
    }
}

extension DeliveryCounts {
    /// Reads the counts from seven columns: audience, pending, leased, accepted, rejected, unknown, suppressed.
    package init(_ row: some SQLFields, from column: Int) throws {
        self.init()
        audience = try row.int(column)
        pending = try row.int(column + 1)
        leased = try row.int(column + 2)
        accepted = try row.int(column + 3)
        rejected = try row.int(column + 4)
        unknown = try row.int(column + 5)
        suppressed = try row.int(column + 6)
    }
}

/// The stored limits of a run; see ``Store/ReachLimits``.
extension ReachLimits {
    /// Returns `nil` if the reach was not counted.
    package static func of(_ run: Int64, _ db: some SQLSession) throws -> ReachLimits? {
        try db.first(
            "SELECT reach, reach_most, reach_bound, signed_segments FROM run WHERE id = $1 AND reach IS NOT NULL", run
        ) { row in
            ReachLimits(
                reach: try row.int(0), most: try row.intOrNil(1), bound: try row.intOrNil(2),
                segments: try row.textOrNil(3).map { try StoredJSON.value($0) })
        }
    }

    package func write(to run: Int64, _ db: some SQLSession) throws {
        try db.execute(
            "UPDATE run SET reach = $2, reach_most = $3, reach_bound = $4, signed_segments = $5 WHERE id = $1", run,
            reach, most, bound, try segments.map { try StoredJSON.text($0) })
    }
}
