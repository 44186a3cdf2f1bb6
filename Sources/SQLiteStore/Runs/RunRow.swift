import GRDB
import Store
import Model

/// Reads and changes rows of `run`.
enum RunRow {
    private static let columns = """
        id, campaign, occurrence, definition, state, state_reason, is_frozen, is_test, created_at, started_at, finished_at,
        audience, pending, leased, accepted, rejected, unknown, suppressed, owner, heartbeat_at, paused_by, halt,
        is_refused, halted_at
        """

    /// The rows of a list. `clauses` is one of our own texts, its values named parameters.
    static func list(_ db: Database, _ clauses: String, _ arguments: StatementArguments) throws -> [ListedRun] {
        let statement = try db.cachedStatement(sql: "SELECT \(columns) FROM run \(clauses)")
        return try Row.fetchAll(statement, arguments: arguments).map(listed)
    }

    /// The first that can be read. `clauses` ends with `LIMIT :limit`.
    static func first(_ db: Database, _ clauses: String, _ arguments: StatementArguments) throws -> Run? {
        try ListedRun.first { limit in try list(db, clauses, arguments &+ ["limit": limit]) }
    }

    static func find(_ db: Database, _ id: Int64) throws -> Run? {
        try list(db, "WHERE id = :id", ["id": id]).first?.get()
    }

    static func require(_ db: Database, _ id: Int64) throws -> Run {
        guard let run = try find(db, id) else { throw StoreError.noSuchRun(id) }
        return run
    }

    /// False when the occurrence has a run already; then nothing is changed.
    static func insert(
        _ campaign: Campaign, _ text: RunDefinitionText, occurrence: String, isTest: Bool, now: Timestamp,
        _ db: Database
    ) throws -> Bool {
        // SQLite uses up a number for each conflict: without this check, numbers of runs jump.
        let known = try Int64.fetchOne(
            db, sql: "SELECT id FROM run WHERE campaign = :campaign AND occurrence = :occurrence",
            arguments: ["campaign": campaign.name, "occurrence": occurrence])
        guard known == nil else { return false }
        let split = CampaignSplit(campaign)
        try db.execute(
            sql: """
                INSERT INTO run (
                    campaign, occurrence, state, is_test, created_at, holdout_seed, variant_seed, definition_hash,
                    definition, coalesce_key, has_timeline
                ) VALUES (
                    :campaign, :occurrence, :state, :test, :now, :holdout_seed, :variant_seed, :hash, :definition,
                    :coalesce_key, 1
                )
                ON CONFLICT (campaign, occurrence) DO NOTHING
                """,
            arguments: [
                "campaign": campaign.name, "occurrence": occurrence, "state": RunState.scheduled.rawValue,
                "test": isTest, "now": now.milliseconds,
                "holdout_seed": split.holdoutSeed, "variant_seed": split.variantSeed, "hash": text.hash,
                "definition": text.json, "coalesce_key": isTest ? nil : campaign.coalesceKey,
            ])
        guard db.changesCount > 0 else { return false }
        if !isTest, let stages = campaign.stages { try SQLiteStageBook.make(stages, run: db.lastInsertedRowID, db) }
        return true
    }

    /// Adds signed differences to the account, and to the timeline what has come to an end by them; returns the new
    /// account. Whatever changes an account does it here, so that the two say the same. A response of APNs ends a series
    /// of automatic pauses.
    @discardableResult
    static func add(
        _ change: DeliveryCounts, _ attempts: SettledAttempts = SettledAttempts(), to run: Int64,
        at now: Timestamp, _ db: Database
    ) throws -> DeliveryCounts {
        try TimelineRow.add(change, attempts, to: run, at: now, db)
        let row = try Row.fetchOne(
            db.cachedStatement(
                sql: """
                    UPDATE run SET
                        audience = audience + :audience, pending = pending + :pending, leased = leased + :leased,
                        accepted = accepted + :accepted, rejected = rejected + :rejected,
                        unknown = unknown + :unknown, suppressed = suppressed + :suppressed,
                        halted_at = CASE WHEN :accepted + :rejected > 0 THEN NULL ELSE halted_at END
                    WHERE id = :run
                    RETURNING audience, pending, leased, accepted, rejected, unknown, suppressed
                    """),
            arguments: [
                "run": run, "audience": change.audience, "pending": change.pending, "leased": change.leased,
                "accepted": change.accepted, "rejected": change.rejected, "unknown": change.unknown,
                "suppressed": change.suppressed,
            ])
        guard let row else { throw StoreError.noSuchRun(run) }
        return counts(row)
    }

    static func counts(_ row: Row) -> DeliveryCounts {
        var counts = DeliveryCounts()
        counts.audience = row["audience"]
        counts.pending = row["pending"]
        counts.leased = row["leased"]
        counts.accepted = row["accepted"]
        counts.rejected = row["rejected"]
        counts.unknown = row["unknown"]
        counts.suppressed = row["suppressed"]
        return counts
    }

    private static func listed(_ row: Row) throws -> ListedRun {
        try ListedRun(
            run: row["id"], campaign: row["campaign"], occurrence: row["occurrence"], state: row["state"]
        ) { state in try run(row, state) }
    }

    private static func run(_ row: Row, _ state: RunState) throws -> Run {
        Run(
            id: row["id"], campaign: row["campaign"], occurrence: row["occurrence"],
            definition: try definition(row["definition"]), state: state, stateReason: row["state_reason"],
            counts: counts(row), isFrozen: row["is_frozen"], isTest: row["is_test"],
            isRefused: row["is_refused"], createdAt: Timestamp(milliseconds: row["created_at"]),
            startedAt: Timestamp(stored: row["started_at"]), finishedAt: Timestamp(stored: row["finished_at"]),
            owner: row["owner"], heartbeatAt: Timestamp(stored: row["heartbeat_at"]), pausedBy: row["paused_by"],
            halt: (row["halt"] as String?).flatMap(RunHalt.init), haltedAt: Timestamp(stored: row["halted_at"]))
    }

    /// Pages and heartbeats read the same few runs again and again, and reading its definition is nearly all that a row costs.
    private static let definitions = TextMemo<RunDefinition>()

    private static func definition(_ json: String) throws -> RunDefinition {
        try definitions.value(of: json) { try RunDefinitionText(json: json).definition() }
    }
}

/// Of a run, see ``Store/ReachLimits``.
extension ReachLimits {
    /// Nil: nobody has counted it.
    static func of(_ run: Int64, _ db: Database) throws -> ReachLimits? {
        let row = try Row.fetchOne(
            db,
            sql:
                "SELECT reach, reach_most, reach_bound, signed_segments FROM run WHERE id = :run AND reach IS NOT NULL",
            arguments: ["run": run])
        return try row.map { row in
            ReachLimits(
                reach: row[0], most: row[1], bound: row[2],
                segments: try (row[3] as String?).map { try StoredJSON.value($0) })
        }
    }

    func write(to run: Int64, _ db: Database) throws {
        try db.execute(
            sql: """
                UPDATE run SET reach = :reach, reach_most = :most, reach_bound = :bound, signed_segments = :segments
                WHERE id = :run
                """,
            arguments: [
                "run": run, "reach": reach, "most": most, "bound": bound,
                "segments": try segments.map { try StoredJSON.text($0) },
            ])
    }
}
