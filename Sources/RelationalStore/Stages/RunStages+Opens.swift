package import Model
package import Store

/// What people did with the pushes of a stage and of earlier runs, and the variant of the rest.
extension RunStages {
    package func reached(of stage: Int, _ goal: StageGoal) throws -> [Int?: Proportion] {
        let (kind, name, condition, within): (FeedbackKind, String, String, Duration?) =
            switch goal {
            case .opened(let within): (.opened, "", "event.run_id = \(run.id)", within)
            case .converted(let goal):
                (.converted, goal.event, "event.happened_at >= sent.changed_at", goal.within)
            }
        let limit = within.map { "AND event.happened_at < sent.changed_at + \($0.components.seconds * 1_000)" } ?? ""
        let table = Session.dialect.deliveries(of: run.id, as: "sent", "INDEXED BY delivery_stage")
        let rows = try db.all(
            .once(
                """
                SELECT sent.variant, count(*), count(*) FILTER (WHERE EXISTS (
                    SELECT 1 FROM feedback_event AS event
                    WHERE event.device_id = sent.device_id AND event.kind = \(kind.rawValue) AND event.name = $2
                        AND \(condition) \(limit)
                ))
                FROM \(table)
                WHERE \(Session.dialect.isOf(run: run.id, "sent")) AND sent.stage = $1 AND sent.stage IS NOT NULL
                    AND sent.state = \(DeliveryState.accepted.code)
                GROUP BY sent.variant
                """), values: [stage, name]
        ) { (try $0.intOrNil(0), Proportion(try $0.int(2), of: try $0.int(1))) }
        return Dictionary(rows) { first, _ in first }
    }

    package func opensBefore(within minutes: Int, at now: Timestamp) throws -> [StageOpens.Earlier] {
        try opens(
            ofRuns: "campaign = $1", "true", run.campaign, within: minutes, at: now,
            limit: StageEvaluator.historyRuns)
    }

    package func opensBeforeInApp(within minutes: Int, at now: Timestamp) throws -> [StageOpens.Earlier] {
        try opens(
            ofRuns: "true", "\(Session.dialect.json("definition", "campaign", "topic")) = $1",
            run.definition.campaign.topic, within: minutes, at: now, limit: StageEvaluator.appHistoryRuns)
    }

    /// Returns the newest run first.
    ///
    /// - Parameters:
    ///   - runs: the condition for the runs that are searched. `latest` is a further one for those that are found.
    ///   - limit: the maximum number of runs.
    private func opens(
        ofRuns runs: String, _ latest: String, _ name: String, within minutes: Int, at now: Timestamp, limit: Int
    ) throws -> [StageOpens.Earlier] {
        try db.all(
            .once(
                """
                SELECT latest.id, latest.accepted, CAST(coalesce((
                    SELECT sum(events) FROM feedback_count
                    WHERE feedback_count.run_id = latest.id AND kind = \(FeedbackKind.opened.rawValue)
                        AND minute >= 0 AND minute < $5
                ), 0) AS bigint)
                FROM (
                    SELECT id, accepted, definition, finished_at FROM run
                    WHERE \(runs) AND state = $2 AND \(Session.dialect.isFalse("is_test")) AND id < $3
                    ORDER BY id DESC LIMIT \(StageEvaluator.appHistoryLookedAt)
                ) AS latest
                WHERE \(latest) AND latest.finished_at <= $4 AND latest.accepted >= \(OpensRule.acceptedMin)
                    AND \(Session.dialect.json("definition", "campaign", "feedback")) IS NOT NULL
                    AND \(Session.dialect.json("definition", "correction")) IS NULL
                ORDER BY latest.id DESC LIMIT \(limit)
                """), values: [name, RunState.finished.rawValue, run.id, now - .seconds(60 * minutes), minutes]
        ) { StageOpens.Earlier(run: try $0.int64(0), opened: try $0.int(2), accepted: try $0.int(1)) }
    }

    package func sent(otherThan variant: Int) throws -> Int {
        try db.first(
            .once(
                """
                SELECT count(*) FROM \(Session.dialect.deliveries(of: run.id))
                WHERE \(Session.dialect.isOf(run: run.id)) AND stage IS NULL AND attempt > 0
                    AND (variant IS NULL OR variant <> \(variant))
                """)
        ) { try $0.int(0) } ?? 0
    }

    /// Returns the variant that a stage chose for the rest; `nil` before that.
    static func variant(chosenBy stage: Int, of run: Int64, _ db: Session) throws -> Int? {
        try db.first("SELECT decision FROM run_stage WHERE run_id = $1 AND stage = $2", run, stage) { row in
            try row.textOrNil(0).map(StageDecision.init(json:))?.variants?.variant
        } ?? nil
    }
}

extension SQLSession {
    /// Gives leased deliveries of the rest the variant that an earlier stage chose, and records it with them, in the
    /// transaction of the lease. So a delivery has its variant before its request starts, and keeps it after a crash.
    package func assignVariant(to taken: inout [LeasedDelivery], _ request: LeaseRequest) throws {
        guard let stage = request.decidingStage, taken.contains(where: { $0.stage == nil }),
            let variant = try RunStages<Self>.variant(chosenBy: stage, of: request.run, self)
        else { return }
        let changed = taken.indices.filter { taken[$0].stage == nil && taken[$0].variant != variant }
        guard !changed.isEmpty else { return }
        for index in changed { taken[index].variant = variant }
        let table = Self.dialect.deliveries(of: request.run)
        try execute(
            .once(
                """
                UPDATE \(table) SET variant = \(variant)
                WHERE \(Self.dialect.isOf(run: request.run)) AND device_id \(Self.dialect.isAny(1))
                """), values: [changed.map { taken[$0].device }])
    }
}
