package import Model
package import Store

/// The stages of a run in the transaction of `db`.
package struct RunStages<Session: SQLSession>: StageStore {
    private static var columns: String {
        """
        stage, size, opened_at, answered, failed, gone, unknown, gone_tolerated, decision, after_go, approved_by,
            released_by
        """
    }

    let db: Session
    let run: Run
    /// The actor for pauses and the starts of stages.
    private let actor: Actor

    package init(_ db: Session, _ run: Run, actor: Actor) {
        self.db = db
        self.run = run
        self.actor = actor
    }

    /// Locks the stages against changes by other transactions until this one ends.
    package static func lock(_ db: Session, run: Int64) throws {
        guard Session.dialect == .postgres else { return }
        try db.execute("SELECT 1 FROM run_stage WHERE run_id = $1 ORDER BY stage FOR UPDATE", run)
    }

    package func records() throws -> [StageRecord] { try Self.records(db, run: run.id) }

    package static func records(_ db: Session, run: Int64) throws -> [StageRecord] {
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

    /// Creates the stages together with their run.
    package static func make(_ stages: [Stage], run: Int64, _ db: Session) throws {
        try db.execute(
            "INSERT INTO run_stage (run_id, stage) VALUES ($1, $2)", each: stages.indices.map { [run, $0] })
    }

    /// Adds the numbers of frozen deliveries to the stages.
    package static func grow(_ sizes: [Int: Int], run: Int64, _ db: Session) throws {
        try db.execute(
            "UPDATE run_stage SET size = size + $3 WHERE run_id = $1 AND stage = $2",
            each: sizes.sorted { $0.key < $1.key }.map { [run, $0.key, $0.value] })
    }

    package func write(_ record: StageRecord) throws {
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

    package func groups(of stage: Int) throws -> [StageGroup: StageAnswers] {
        try groups(
            """
            SELECT environment, nullif(locale_index, -1), answered, failed, gone, unknown FROM run_stage_group
            WHERE run_id = $1 AND stage = $2
            """, stage)
    }

    package func add(_ answers: [StageGroup: StageAnswers], to stage: Int) throws {
        try db.execute(
            """
            INSERT INTO run_stage_group (
                run_id, stage, environment, locale_index, answered, failed, gone, unknown
            ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT (run_id, stage, environment, locale_index) DO UPDATE SET
                answered = run_stage_group.answered + excluded.answered,
                failed = run_stage_group.failed + excluded.failed, gone = run_stage_group.gone + excluded.gone,
                unknown = run_stage_group.unknown + excluded.unknown
            """,
            each: answers.map { group, own in
                [
                    run.id, stage, group.environment.code, group.locale ?? -1, own.answered, own.failed, own.gone,
                    own.unknown,
                ]
            })
    }

    package func replace(_ answers: [StageGroup: StageAnswers], of stage: Int) throws {
        try db.execute("DELETE FROM run_stage_group WHERE run_id = $1 AND stage = $2", run.id, stage)
        try add(answers, to: stage)
    }

    private func groups(_ statement: SQLStatement, _ stage: Int) throws -> [StageGroup: StageAnswers] {
        let groups = try db.all(statement, run.id, stage) { row in
            (
                StageGroup(environment: PushEnvironment(code: try row.int64(0)), locale: try row.intOrNil(1)),
                StageAnswers(
                    answered: try row.int(2), failed: try row.int(3), gone: try row.int(4), unknown: try row.int(5))
            )
        }
        return Dictionary(groups) { _, last in last }
    }

    /// The deliveries of a stage of the run. `$1` is the run's id, `$2` the stage's number.
    private var ofStage: String {
        let table = Session.dialect.deliveries(of: run.id, "INDEXED BY delivery_stage")
        return "FROM \(table) WHERE \(Session.dialect.isOf(parameter: 1)) AND stage = $2 AND stage IS NOT NULL"
    }

    package func tally(of stage: Int) throws -> [StageGroup: StageAnswers] {
        try groups(
            """
            SELECT environment, locale_index,
                count(*) FILTER (
                    WHERE state = \(DeliveryState.accepted.code) OR \(Self.isRefused) OR \(Self.isTooLarge)),
                count(*) FILTER (WHERE \(Self.isRefused) AND status <> 410 OR \(Self.isTooLarge)),
                count(*) FILTER (WHERE \(Self.isRefused) AND status = 410),
                count(*) FILTER (
                    WHERE state = \(DeliveryState.unknown.code)
                        OR state = \(DeliveryState.rejected.code) AND NOT \(Self.isRefused) OR \(Self.isLost))
            \(ofStage) GROUP BY environment, locale_index
            """, stage)
    }

    /// The condition for rejections that are not caused by trouble at APNs (429, 5xx).
    private static var isRefused: String {
        "(state = \(DeliveryState.rejected.code) AND status <> 429 AND status < 500)"
    }
    private static var isTooLarge: String {
        "(state = \(DeliveryState.suppressed.code) AND reason = '\(SuppressionReason.payloadTooLarge.rawValue)')"
    }
    /// The condition for deliveries that were sent and then suppressed.
    private static var isLost: String {
        """
        (state = \(DeliveryState.suppressed.code) AND attempt > 0 AND NOT \(isTooLarge)
            AND reason NOT IN (\(SQLConstants.list(SuppressionReason.allCases.filter(\.isSilent).map(\.rawValue)))))
        """
    }

    /// Returns the deliveries in flight by environment. A delivery of an early stage is never fresh, so those in flight
    /// are adjacent in the index of waiting deliveries.
    package func unanswered(of stage: Int) throws -> [PushEnvironment: Int] {
        let table = Session.dialect.deliveries(of: run.id, "INDEXED BY delivery_waiting")
        var found: [PushEnvironment: Int] = [:]
        for environment in PushEnvironment.allCases {
            found[environment] = try db.first(
                """
                SELECT count(*) FROM \(table)
                WHERE \(Session.dialect.isOf(parameter: 1)) AND environment = $3 AND not_before = \(NotBefore.inFlight)
                    AND not_before IS NOT NULL AND state = \(DeliveryState.pending.code) AND stage = $2
                """, run.id, stage, environment.code
            ) { try $0.int(0) }
        }
        return found.filter { $0.value > 0 }
    }

    package func leftOut(of stage: Int) throws -> [SuppressionReason: Int] {
        let rows = try db.all(
            """
            SELECT reason, count(*) \(ofStage) AND attempt = 0
                AND state = \(DeliveryState.suppressed.code) AND NOT \(Self.isTooLarge)
            GROUP BY reason
            """, run.id, stage
        ) { (try $0.text(0), try $0.int(1)) }
        return rows.reduce(into: [:]) { found, row in
            if let reason = SuppressionReason(rawValue: row.0) { found[reason] = row.1 }
        }
    }

    package func apnsErrors(of stage: Int) throws -> Int {
        try db.first(
            """
            SELECT count(*) \(ofStage) AND state = \(DeliveryState.rejected.code) AND NOT \(Self.isRefused)
            """, run.id, stage
        ) { try $0.int(0) } ?? 0
    }

    package func attempted(_ devices: [Int64]) throws -> [(stage: Int, group: StageGroup)] {
        try db.all(
            """
            SELECT stage, environment, locale_index FROM \(Session.dialect.deliveries(of: run.id))
            WHERE \(Session.dialect.isOf(parameter: 1)) AND device_id \(Session.dialect.isAny(2))
                AND stage IS NOT NULL AND \(Self.isLost)
            """, run.id, devices
        ) { row in
            let group = StageGroup(environment: PushEnvironment(code: try row.int64(1)), locale: try row.intOrNil(2))
            return (try row.int(0), group)
        }
    }

    package func isWaiting(stage: Int, at now: Timestamp) throws -> Bool {
        try db.first(
            """
            SELECT 1 \(ofStage) AND state = \(DeliveryState.pending.code) AND (
                not_before = \(NotBefore.inFlight)
                OR (wave IS NULL OR wave <= $3)
                    AND (reason IS NULL OR reason NOT IN (\(SQLConstants.list(SuppressionReason.putOff.map(\.rawValue))))
                        OR not_before <= $3 OR not_before >= \(NotBefore.heldFrom))
            ) LIMIT 1
            """, run.id, stage, now
        ) { _ in true } ?? false
    }

    package func isPending(stage: Int) throws -> Bool {
        try db.first("SELECT 1 \(ofStage) AND state = \(DeliveryState.pending.code) LIMIT 1", run.id, stage) { _ in true
        }
            ?? false
    }

    package func goneBefore() throws -> [(gone: Int, answered: Int)] {
        try gone(
            inRuns: """
                SELECT id FROM run
                WHERE campaign = $1 AND state = $2 AND \(Session.dialect.isFalse("is_test")) AND id < $3
                ORDER BY id DESC LIMIT \(StageEvaluator.historyRuns)
                """, run.campaign)
    }

    package func goneBeforeInApp() throws -> [(gone: Int, answered: Int)] {
        try gone(
            inRuns: """
                SELECT id FROM (
                    SELECT id, definition FROM run
                    WHERE state = $2 AND \(Session.dialect.isFalse("is_test")) AND id < $3
                    ORDER BY id DESC LIMIT \(StageEvaluator.appHistoryLookedAt)
                ) AS latest
                WHERE \(Session.dialect.json("definition", "campaign", "topic")) = $1
                ORDER BY id DESC LIMIT \(StageEvaluator.appHistoryRuns)
                """, run.definition.campaign.topic)
    }

    private func gone(inRuns runs: String, _ name: String) throws -> [(gone: Int, answered: Int)] {
        try db.all(
            """
            SELECT CAST(coalesce(sum(deliveries) FILTER (WHERE status = 410), 0) AS bigint),
                CAST(sum(deliveries) AS bigint)
            FROM outcome_summary WHERE status <> 0 AND run_id IN (\(runs)) GROUP BY run_id
            """, name, RunState.finished.rawValue, run.id
        ) { (try $0.int(0), try $0.int(1)) }
    }

    package func pause(_ halt: RunHalt, reason: String, at now: Timestamp) throws {
        // A person's decision overrides a verdict.
        guard try RunOwner.locked(db, run.id).state == .running else { return }
        try RunStateChange(db, run.id, now: now).note(.paused, reason: reason, actor: actor, halt: halt)
    }

    /// Records an event. It locks the run before the event chain, like every transaction that changes the run's
    /// state.
    package func note(_ detail: String, at now: Timestamp) throws {
        _ = try RunOwner.locked(db, run.id)
        try db.record(.runStage, run: run.id, by: actor, detail, now: now)
    }

    /// Records that a person has resumed a run that a stage had paused.
    static func release(_ run: Int64, by actor: Actor, _ db: Session) throws {
        try db.execute(
            """
            UPDATE run_stage SET released_by = $2
            WHERE run_id = $1 AND released_by IS NULL
                AND (\(Session.dialect.json("decision", "verdict")) <> '\(StageVerdict.go.rawValue)'
                    OR after_go IS NOT NULL)
            """, run, actor.name)
    }
}

extension RelationalStore {
    package func stages(of run: Int64) async throws -> [StageRecord] {
        try await snapshot(.short) { db in try RunStages.records(db, run: run) }
    }

    package func approveStage(
        of run: Int64, stage: Int, variant: Int?, by actor: Actor, now: Timestamp
    ) async throws -> Bool {
        try await transaction(.durable) { db in
            _ = try RunOwner.alone(db, run)
            let found = try RunRow.require(db, run)
            guard found.state == .paused, found.halt == .approval else { return false }
            let stages = RunStages(db, found, actor: actor)
            let records = try stages.records()
            guard var next = records.first(where: { $0.openedAt == nil }), next.index == stage else { return false }
            let deciding = records.first { $0.awaitsVariant }
            guard (deciding == nil) == (variant == nil) else { return false }
            if var deciding, let variant {
                guard found.definition.campaign.variants.indices.contains(variant) else { return false }
                deciding.decision?.variants?.choose(variant, by: actor)
                try stages.write(deciding)
                try stages.note(StageSummary(found, deciding).chosen(by: actor), at: now)
            }
            next.approvedBy = actor.name
            try stages.write(next)
            try RunOwner.heard(db, run, at: now)
            try stages.note(StageSummary(found, next).approved(by: actor), at: now)
            try RunStateChange(db, run, now: now).note(.running, reason: nil, actor: actor)
            return true
        }
    }
}

extension StageController {
    /// Returns the controller of a run, or `nil` as ``init(_:_:at:)`` does.
    ///
    /// - Parameter owner: the sender that pauses the run and begins its stages; `nil` for the run's owner.
    package static func of(
        _ run: Int64, for owner: String? = nil, at now: Timestamp, _ db: some SQLSession
    ) throws -> StageController? {
        let record = try RunRow.require(db, run)
        let actor = Actor(owner ?? record.owner ?? "")
        return StageController(record, RunStages(db, record, actor: actor), at: now)
    }
}
