package import Model
import Store
import RelationalStore

/// The stages of a run in the transaction of `db`.
struct PostgresStageBook: StageBook {
    private static let columns = """
        stage, size, opened_at, answered, failed, gone, unknown, gone_tolerated, decision, after_go, approved_by,
            released_by
        """

    private let db: PostgresSession
    private let run: Run
    /// In whose name it is paused, and stages begin.
    private let actor: Actor

    init(_ db: PostgresSession, _ run: Run, actor: Actor) {
        self.db = db
        self.run = run
        self.actor = actor
    }

    /// Nobody else changes them until the transaction ends.
    static func lock(_ db: PostgresSession, run: Int64) throws {
        try db.execute("SELECT 1 FROM run_stage WHERE run_id = $1 ORDER BY stage FOR UPDATE", run)
    }

    /// The same for whoever leases, who changes nothing once the last stage has begun.
    static func lockUnlessOver(_ db: PostgresSession, run: Int64) throws {
        let last = "SELECT opened_at IS NOT NULL FROM run_stage WHERE run_id = $1 ORDER BY stage DESC LIMIT 1"
        let isOver = try db.first(SQLStatement(stringLiteral: last), run) { try $0.bool(0) } ?? true
        if !isOver { try lock(db, run: run) }
    }

    func records() throws -> [StageRecord] { try Self.records(db, run: run.id) }

    static func records(_ db: PostgresSession, run: Int64) throws -> [StageRecord] {
        try db.all("SELECT \(columns) FROM run_stage WHERE run_id = $1 ORDER BY stage", run) { row in
            StageRecord(
                index: try row.int(0), size: try row.int(1), openedAt: try row.timestampOrNil(2),
                answers: StageAnswers(
                    answered: try row.int(3), failed: try row.int(4), gone: try row.int(5), unknown: try row.int(6)),
                goneTolerated: try row.intOrNil(7).map(StageRecord.share(ofMillionths:)),
                decision: try row.textOrNil(8).map(StageDecision.init(json:)),
                afterGo: try row.textOrNil(9).map(StageDecision.init(json:)), approvedBy: try row.textOrNil(10),
                releasedBy: try row.textOrNil(11))
        }
    }

    /// With the run.
    static func make(_ stages: [Stage], run: Int64, _ db: PostgresSession) throws {
        try db.execute(
            "INSERT INTO run_stage (run_id, stage) SELECT $1, * FROM unnest($2::bigint[])", run,
            stages.indices.map(Int64.init))
    }

    /// The freeze has written so many of each stage.
    static func grow(_ sizes: [Int: Int], run: Int64, _ db: PostgresSession) throws {
        for (stage, count) in sizes.sorted(by: { $0.key < $1.key }) {
            try db.execute(
                "UPDATE run_stage SET size = size + $3 WHERE run_id = $1 AND stage = $2", run, stage, count)
        }
    }

    func write(_ record: StageRecord) throws {
        try db.execute(
            """
            UPDATE run_stage SET
                opened_at = $3, answered = $4, failed = $5, gone = $6, unknown = $7, gone_tolerated = $8, decision = $9,
                after_go = $10, approved_by = $11, released_by = $12
            WHERE run_id = $1 AND stage = $2
            """, run.id, record.index, record.openedAt, record.answers.answered, record.answers.failed,
            record.answers.gone, record.answers.unknown, record.goneTolerated.map(StageRecord.millionths(ofShare:)),
            try record.decision?.json(), try record.afterGo?.json(), record.approvedBy, record.releasedBy)
    }

    func groups(of stage: Int) throws -> [StageGroup: StageAnswers] {
        var groups: [StageGroup: StageAnswers] = [:]
        let rows = try db.rows(
            """
            SELECT environment, locale_index, answered, failed, gone, unknown FROM run_stage_group
            WHERE run_id = $1 AND stage = $2
            """, run.id, stage)
        for row in rows {
            let locale = try row.int(1)
            let group = StageGroup(
                environment: PushEnvironment(code: try row.int64(0)), locale: locale == -1 ? nil : locale)
            groups[group] = StageAnswers(
                answered: try row.int(2), failed: try row.int(3), gone: try row.int(4), unknown: try row.int(5))
        }
        return groups
    }

    func add(_ answers: [StageGroup: StageAnswers], to stage: Int) throws {
        for (group, own) in answers {
            try db.execute(
                """
                INSERT INTO run_stage_group AS kept VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                ON CONFLICT (run_id, stage, environment, locale_index) DO UPDATE SET
                    answered = kept.answered + excluded.answered, failed = kept.failed + excluded.failed,
                    gone = kept.gone + excluded.gone, unknown = kept.unknown + excluded.unknown
                """, run.id, stage, group.environment.code, group.locale ?? -1, own.answered, own.failed, own.gone,
                own.unknown)
        }
    }

    /// Not by an APNs that was in trouble.
    private static let isRefused =
        "(state = \(DeliveryState.rejected.code) AND status <> 429 AND status < 500)"
    private static let isTooLarge =
        "(state = \(DeliveryState.suppressed.code) AND reason = '\(SuppressionReason.payloadTooLarge.rawValue)')"
    /// Sent before, and then left out.
    private static let isLost = """
        (state = \(DeliveryState.suppressed.code) AND attempt > 0 AND NOT \(isTooLarge)
            AND reason NOT IN (\(SQLConstants.list(StageAnswers.leftOutSilently.map(\.rawValue)))))
        """

    func tally(of stage: Int) throws -> [StageGroup: StageAnswers] {
        var found: [StageGroup: StageAnswers] = [:]
        let rows = try db.rows(
            """
            SELECT environment, locale_index,
                count(*) FILTER (
                    WHERE state = \(DeliveryState.accepted.code) OR \(Self.isRefused) OR \(Self.isTooLarge)),
                count(*) FILTER (WHERE \(Self.isRefused) AND status <> 410 OR \(Self.isTooLarge)),
                count(*) FILTER (WHERE \(Self.isRefused) AND status = 410),
                count(*) FILTER (
                    WHERE state = \(DeliveryState.unknown.code)
                        OR state = \(DeliveryState.rejected.code) AND NOT \(Self.isRefused) OR \(Self.isLost))
            FROM \(DeliveryTable(run: run.id).name) WHERE stage = $1 GROUP BY environment, locale_index
            """, stage)
        for row in rows {
            let group = StageGroup(environment: PushEnvironment(code: try row.int64(0)), locale: try row.intOrNil(1))
            found[group] = StageAnswers(
                answered: try row.int(2), failed: try row.int(3), gone: try row.int(4), unknown: try row.int(5))
        }
        return found
    }

    func replace(_ answers: [StageGroup: StageAnswers], of stage: Int) throws {
        try db.execute("DELETE FROM run_stage_group WHERE run_id = $1 AND stage = $2", run.id, stage)
        try add(answers, to: stage)
    }

    /// Of an early stage nothing is ever fresh: what is in flight stands at one place of the index of those that wait.
    func unanswered(of stage: Int) throws -> [PushEnvironment: Int] {
        let rows = try db.rows(
            """
            SELECT environment, count(*) FROM \(DeliveryTable(run: run.id).name)
            WHERE environment = ANY ($2) AND not_before = \(NotBefore.inFlight) AND stage = $1
                AND state = \(DeliveryState.pending.code)
            GROUP BY environment
            """, stage, PushEnvironment.allCases.map(\.code))
        var found: [PushEnvironment: Int] = [:]
        for row in rows { found[PushEnvironment(code: try row.int64(0))] = try row.int(1) }
        return found
    }

    func leftOut(of stage: Int) throws -> [SuppressionReason: Int] {
        let rows = try db.rows(
            """
            SELECT reason, count(*) FROM \(DeliveryTable(run: run.id).name)
            WHERE stage = $1 AND attempt = 0 AND state = \(DeliveryState.suppressed.code) AND NOT \(Self.isTooLarge)
            GROUP BY reason
            """, stage)
        var found: [SuppressionReason: Int] = [:]
        for row in rows {
            if let reason = SuppressionReason(rawValue: try row.text(0)) { found[reason] = try row.int(1) }
        }
        return found
    }

    func apnsErrors(of stage: Int) throws -> Int {
        try db.first(
            """
            SELECT count(*) FROM \(DeliveryTable(run: run.id).name)
            WHERE stage = $1 AND state = \(DeliveryState.rejected.code) AND NOT \(Self.isRefused)
            """, stage
        ) { try $0.int(0) } ?? 0
    }

    func attempted(_ devices: [Int64]) throws -> [(stage: Int, group: StageGroup)] {
        try db.all(
            """
            SELECT stage, environment, locale_index FROM \(DeliveryTable(run: run.id).name)
            WHERE device_id = ANY ($1) AND stage IS NOT NULL AND \(Self.isLost)
            """, devices
        ) { row in
            let group = StageGroup(environment: PushEnvironment(code: try row.int64(1)), locale: try row.intOrNil(2))
            return (try row.int(0), group)
        }
    }

    func isWaiting(stage: Int, at now: Timestamp) throws -> Bool {
        try db.execute(
            """
            SELECT 1 FROM \(DeliveryTable(run: run.id).name)
            WHERE stage = $1 AND state = \(DeliveryState.pending.code) AND (
                not_before = \(NotBefore.inFlight)
                OR (wave IS NULL OR wave <= $2)
                    AND (reason IS NULL OR reason NOT IN (\(SQLConstants.list(SuppressionReason.putOff.map(\.rawValue))))
                        OR not_before <= $2 OR not_before >= \(NotBefore.heldFrom))
            ) LIMIT 1
            """, stage, now) > 0
    }

    func isPending(stage: Int) throws -> Bool {
        try db.execute(
            """
            SELECT 1 FROM \(DeliveryTable(run: run.id).name)
            WHERE stage = $1 AND state = \(DeliveryState.pending.code) LIMIT 1
            """, stage) > 0
    }

    func goneBefore() throws -> [(gone: Int, answered: Int)] {
        try gone(
            inRuns: """
                SELECT id FROM run WHERE campaign = $1 AND state = $2 AND NOT is_test AND id < $3
                ORDER BY id DESC LIMIT \(StageJudge.historyRuns)
                """, run.campaign)
    }

    func goneBeforeInApp() throws -> [(gone: Int, answered: Int)] {
        try gone(
            inRuns: """
                SELECT id FROM (
                    SELECT id, definition FROM run WHERE state = $2 AND NOT is_test AND id < $3
                    ORDER BY id DESC LIMIT \(StageJudge.appHistoryLookedAt)
                ) AS latest
                WHERE definition::json #>> '{campaign,topic}' = $1
                ORDER BY id DESC LIMIT \(StageJudge.appHistoryRuns)
                """, run.definition.campaign.topic)
    }

    private func gone(inRuns runs: String, _ name: String) throws -> [(gone: Int, answered: Int)] {
        try db.all(
            """
            SELECT coalesce(sum(deliveries) FILTER (WHERE status = 410), 0)::bigint, sum(deliveries)::bigint
            FROM outcome_summary WHERE status <> 0 AND run_id IN (\(runs)) GROUP BY run_id
            """, name, RunState.finished.rawValue, run.id
        ) { (try $0.int(0), try $0.int(1)) }
    }

    func pause(_ halt: RunHalt, reason: String, at now: Timestamp) throws {
        // A person's word is stronger than a verdict.
        guard try RunOwner.locked(db, run.id).state == .running else { return }
        try RunStateChange(db, run.id, now: now).note(.paused, reason: reason, actor: actor, halt: halt)
    }

    /// Locks the run before the chain of events, as everybody does who changes its state.
    func note(_ detail: String, at now: Timestamp) throws {
        _ = try RunOwner.locked(db, run.id)
        try EventLog.record(db, kind: .runStage, run: run.id, actor: actor, detail: detail, now: now)
    }
}

extension PostgresDatabase {
    package func stages(of run: Int64) async throws -> [StageRecord] {
        try await read(.short) { db in try PostgresStageBook.records(db, run: run) }
    }

    package func approveStage(of run: Int64, stage: Int, by actor: Actor, now: Timestamp) async throws -> Bool {
        try await write(.durable) { db in
            _ = try RunOwner.alone(db, run)
            let found = try RunRow.require(db, run)
            guard found.state == .paused, found.halt == .approval else { return false }
            let book = PostgresStageBook(db, found, actor: actor)
            guard var next = try book.records().first(where: { $0.openedAt == nil }), next.index == stage else {
                return false
            }
            next.approvedBy = actor.name
            try book.write(next)
            try RunOwner.heard(db, run, at: now)
            try book.note(StageWords(found, next).approved(by: actor), at: now)
            try RunStateChange(db, run, now: now).note(.running, reason: nil, actor: actor)
            return true
        }
    }

    /// A person lets a run go on that a stage had stopped.
    static func releaseStages(of run: Int64, by actor: Actor, _ db: PostgresSession) throws {
        try db.execute(
            """
            UPDATE run_stage SET released_by = $2
            WHERE run_id = $1 AND released_by IS NULL
                AND (decision::json ->> 'verdict' <> '\(StageVerdict.go.rawValue)' OR after_go IS NOT NULL)
            """, run, actor.name)
    }
}
