import GRDB
package import Model
import RelationalStore
import Store

/// The stages of a run in the transaction of `db`.
struct SQLiteStageBook: StageBook {
    private static let columns = """
        stage, size, opened_at, answered, failed, gone, unknown, gone_tolerated, decision, after_go, approved_by,
            released_by
        """

    private let db: Database
    private let run: Run
    /// In whose name it is paused, and stages begin.
    private let actor: Actor

    init(_ db: Database, _ run: Run, actor: Actor) {
        self.db = db
        self.run = run
        self.actor = actor
    }

    func records() throws -> [StageRecord] { try Self.records(db, run: run.id) }

    static func records(_ db: Database, run: Int64) throws -> [StageRecord] {
        try Row.fetchAll(
            db.cachedStatement(sql: "SELECT \(columns) FROM run_stage WHERE run_id = :run ORDER BY stage"),
            arguments: ["run": run]
        ).map { row in
            StageRecord(
                index: row[0], size: row[1], openedAt: Timestamp(stored: row[2]),
                answers: StageAnswers(answered: row[3], failed: row[4], gone: row[5], unknown: row[6]),
                goneTolerated: (row[7] as Int?).map(StageRecord.share(ofMillionths:)),
                decision: try (row[8] as String?).map(StageDecision.init(json:)),
                afterGo: try (row[9] as String?).map(StageDecision.init(json:)), approvedBy: row[10],
                releasedBy: row[11])
        }
    }

    /// The last stage, where it has begun and none is halted; nil: ``StageGate/pass()`` knows.
    ///
    /// - Parameter count: of the campaign's stages.
    static func lastBegun(_ db: Database, run: Int64, of count: Int) throws -> Int? {
        let row = try Row.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT max(stage), count(*) > 1 AND count(*) = :count AND count(opened_at) = :count,
                        count(*) FILTER (WHERE released_by IS NULL
                            AND (after_go IS NOT NULL OR json_extract(decision, '$.verdict') <> :go))
                    FROM run_stage WHERE run_id = :run
                    """), arguments: ["run": run, "count": count, "go": StageVerdict.go.rawValue])
        guard let row, row[1], (row[2] as Int) == 0 else { return nil }
        return row[0]
    }

    /// With the run.
    static func make(_ stages: [Stage], run: Int64, _ db: Database) throws {
        for index in stages.indices {
            try db.execute(
                sql: "INSERT INTO run_stage (run_id, stage) VALUES (:run, :stage)",
                arguments: ["run": run, "stage": index])
        }
    }

    /// The freeze has written so many of each stage.
    static func grow(_ sizes: [Int: Int], run: Int64, _ db: Database) throws {
        for (stage, count) in sizes {
            try db.cachedStatement(
                sql: "UPDATE run_stage SET size = size + :count WHERE run_id = :run AND stage = :stage"
            ).execute(arguments: ["count": count, "run": run, "stage": stage])
        }
    }

    func write(_ record: StageRecord) throws {
        try db.cachedStatement(
            sql: """
                UPDATE run_stage SET
                    opened_at = :opened, answered = :answered, failed = :failed, gone = :gone, unknown = :unknown,
                    gone_tolerated = :tolerated, decision = :decision, after_go = :after_go, approved_by = :approved,
                    released_by = :released
                WHERE run_id = :run AND stage = :stage
                """
        ).execute(arguments: [
            "run": run.id, "stage": record.index, "opened": record.openedAt?.milliseconds,
            "answered": record.answers.answered, "failed": record.answers.failed, "gone": record.answers.gone,
            "unknown": record.answers.unknown, "tolerated": record.goneTolerated.map(StageRecord.millionths(ofShare:)),
            "decision": try record.decision?.json(), "after_go": try record.afterGo?.json(),
            "approved": record.approvedBy, "released": record.releasedBy,
        ])
    }

    func groups(of stage: Int) throws -> [StageGroup: StageAnswers] {
        let rows = try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT environment, locale_index, answered, failed, gone, unknown FROM run_stage_group
                    WHERE run_id = :run AND stage = :stage
                    """), arguments: ["run": run.id, "stage": stage])
        return rows.reduce(into: [:]) { groups, row in
            let group = StageGroup(environment: PushEnvironment(code: row[0]), locale: row[1] == -1 ? nil : row[1])
            groups[group] = StageAnswers(answered: row[2], failed: row[3], gone: row[4], unknown: row[5])
        }
    }

    func add(_ answers: [StageGroup: StageAnswers], to stage: Int) throws {
        for (group, own) in answers {
            try db.cachedStatement(
                sql: """
                    INSERT INTO run_stage_group VALUES (
                        :run, :stage, :environment, :locale, :answered, :failed, :gone, :unknown
                    )
                    ON CONFLICT DO UPDATE SET
                        answered = answered + excluded.answered, failed = failed + excluded.failed,
                        gone = gone + excluded.gone, unknown = unknown + excluded.unknown
                    """
            ).execute(arguments: [
                "run": run.id, "stage": stage, "environment": group.environment.code, "locale": group.locale ?? -1,
                "answered": own.answered, "failed": own.failed, "gone": own.gone, "unknown": own.unknown,
            ])
        }
    }

    func replace(_ answers: [StageGroup: StageAnswers], of stage: Int) throws {
        try db.execute(
            sql: "DELETE FROM run_stage_group WHERE run_id = :run AND stage = :stage",
            arguments: ["run": run.id, "stage": stage])
        try add(answers, to: stage)
    }

    private static let tallySQL = """
        SELECT environment, locale_index,
            count(*) FILTER (WHERE state = \(DeliveryState.accepted.rawValue) OR \(isRefused) OR \(isTooLarge)),
            count(*) FILTER (WHERE \(isRefused) AND status <> 410 OR \(isTooLarge)),
            count(*) FILTER (WHERE \(isRefused) AND status = 410),
            count(*) FILTER (
                WHERE state = \(DeliveryState.unknown.rawValue)
                    OR state = \(DeliveryState.rejected.rawValue) AND NOT \(isRefused) OR \(isLost)
            )
        FROM delivery INDEXED BY delivery_stage
        WHERE run_id = :run AND stage = :stage AND stage IS NOT NULL GROUP BY environment, locale_index
        """
    /// Not by an APNs that was in trouble.
    private static let isRefused =
        "(state = \(DeliveryState.rejected.rawValue) AND status <> 429 AND status < 500)"
    private static let isTooLarge =
        "(state = \(DeliveryState.suppressed.rawValue) AND reason = '\(SuppressionReason.payloadTooLarge.rawValue)')"
    /// Sent before, and then left out.
    private static let isLost = """
        (state = \(DeliveryState.suppressed.rawValue) AND attempt > 0 AND NOT \(isTooLarge)
            AND reason NOT IN (\(SQLConstants.list(StageAnswers.leftOutSilently.map(\.rawValue)))))
        """

    func tally(of stage: Int) throws -> [StageGroup: StageAnswers] {
        try Row.fetchAll(db, sql: Self.tallySQL, arguments: ["run": run.id, "stage": stage]).reduce(into: [:]) {
            $0[StageGroup(environment: PushEnvironment(code: $1[0]), locale: $1[1])] =
                StageAnswers(answered: $1[2], failed: $1[3], gone: $1[4], unknown: $1[5])
        }
    }

    func unanswered(of stage: Int) throws -> [PushEnvironment: Int] {
        var found: [PushEnvironment: Int] = [:]
        for environment in PushEnvironment.allCases {
            // Of an early stage nothing is ever fresh: what is in flight stands at one place of this index.
            found[environment] = try Int.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT count(*) FROM delivery INDEXED BY delivery_waiting
                        WHERE run_id = :run AND environment = :environment AND not_before = \(NotBefore.inFlight)
                            AND not_before IS NOT NULL AND state = \(DeliveryState.pending.rawValue) AND stage = :stage
                        """), arguments: ["run": run.id, "environment": environment.code, "stage": stage])
        }
        return found.filter { $0.value > 0 }
    }

    func leftOut(of stage: Int) throws -> [SuppressionReason: Int] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT reason, count(*) FROM delivery INDEXED BY delivery_stage
                WHERE run_id = :run AND stage = :stage AND stage IS NOT NULL AND attempt = 0
                    AND state = \(DeliveryState.suppressed.rawValue) AND NOT \(Self.isTooLarge)
                GROUP BY reason
                """, arguments: ["run": run.id, "stage": stage]
        ).reduce(into: [:]) { found, row in
            if let reason = SuppressionReason(rawValue: row[0]) { found[reason] = row[1] }
        }
    }

    func apnsErrors(of stage: Int) throws -> Int {
        try Int.fetchOne(
            db,
            sql: """
                SELECT count(*) FROM delivery INDEXED BY delivery_stage
                WHERE run_id = :run AND stage = :stage AND stage IS NOT NULL
                    AND state = \(DeliveryState.rejected.rawValue) AND NOT \(Self.isRefused)
                """, arguments: ["run": run.id, "stage": stage]) ?? 0
    }

    func attempted(_ devices: [Int64]) throws -> [(stage: Int, group: StageGroup)] {
        try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT stage, environment, locale_index FROM delivery
                    WHERE run_id = :run AND device_id IN (SELECT value FROM json_each(:devices)) AND stage IS NOT NULL
                        AND \(Self.isLost)
                    """), arguments: ["run": run.id, "devices": StoredJSON.array(devices)]
        ).map { ($0[0], StageGroup(environment: PushEnvironment(code: $0[1]), locale: $0[2])) }
    }

    private static let pending = """
        SELECT 1 FROM delivery INDEXED BY delivery_stage
        WHERE run_id = :run AND stage = :stage AND stage IS NOT NULL AND state = \(DeliveryState.pending.rawValue)
        """

    func isWaiting(stage: Int, at now: Timestamp) throws -> Bool {
        try Bool.fetchOne(
            db.cachedStatement(
                sql: """
                    \(Self.pending) AND (
                        not_before = \(NotBefore.inFlight)
                        OR (wave IS NULL OR wave <= :now)
                            AND (reason IS NULL
                                OR reason NOT IN (\(SQLConstants.list(SuppressionReason.putOff.map(\.rawValue))))
                                OR not_before <= :now OR not_before >= \(NotBefore.heldFrom))
                    ) LIMIT 1
                    """), arguments: ["run": run.id, "stage": stage, "now": now.milliseconds]) ?? false
    }

    func isPending(stage: Int) throws -> Bool {
        try Bool.fetchOne(
            db.cachedStatement(sql: "\(Self.pending) LIMIT 1"), arguments: ["run": run.id, "stage": stage]) ?? false
    }

    func goneBefore() throws -> [(gone: Int, answered: Int)] {
        try gone(
            inRuns: """
                SELECT id FROM run
                WHERE campaign = :campaign AND state = :finished AND is_test = 0 AND id < :run
                ORDER BY id DESC LIMIT \(StageJudge.historyRuns)
                """, ["campaign": run.campaign])
    }

    func goneBeforeInApp() throws -> [(gone: Int, answered: Int)] {
        try gone(
            inRuns: """
                SELECT id FROM (
                    SELECT id, definition FROM run WHERE state = :finished AND is_test = 0 AND id < :run
                    ORDER BY id DESC LIMIT \(StageJudge.appHistoryLookedAt)
                )
                WHERE json_extract(definition, '$.campaign.topic') = :topic
                ORDER BY id DESC LIMIT \(StageJudge.appHistoryRuns)
                """, ["topic": run.definition.campaign.topic])
    }

    private func gone(
        inRuns runs: String, _ arguments: StatementArguments
    ) throws -> [(gone: Int, answered: Int)] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT coalesce(sum(deliveries) FILTER (WHERE status = 410), 0), sum(deliveries)
                FROM outcome_summary WHERE status <> 0 AND run_id IN (\(runs)) GROUP BY run_id
                """,
            arguments: arguments + ["finished": RunState.finished.rawValue, "run": run.id]
        ).map { ($0[0], $0[1]) }
    }

    func pause(_ halt: RunHalt, reason: String, at now: Timestamp) throws {
        // A person's word is stronger than a verdict.
        guard try RunOwner(db, run.id).state == .running else { return }
        try RunStateChange(db, run.id, now: now).note(.paused, reason: reason, actor: actor, halt: halt)
    }

    func note(_ detail: String, at now: Timestamp) throws {
        try EventLog.record(db, kind: .runStage, run: run.id, actor: actor, detail: detail, now: now)
    }
}

extension SQLiteFileStore {
    package func stages(of run: Int64) async throws -> [StageRecord] {
        try await read(.short) { db in try SQLiteStageBook.records(db, run: run) }
    }

    package func approveStage(of run: Int64, stage: Int, by actor: Actor, now: Timestamp) async throws -> Bool {
        try await writeDurably { db in
            let found = try RunRow.require(db, run)
            guard found.state == .paused, found.halt == .approval else { return false }
            let book = SQLiteStageBook(db, found, actor: actor)
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
    static func releaseStages(of run: Int64, by actor: Actor, _ db: Database) throws {
        try db.cachedStatement(
            sql: """
                UPDATE run_stage SET released_by = :actor
                WHERE run_id = :run AND released_by IS NULL
                    AND (json_extract(decision, '$.verdict') <> :go OR after_go IS NOT NULL)
                """
        ).execute(arguments: ["actor": actor.name, "run": run, "go": StageVerdict.go.rawValue])
    }
}
