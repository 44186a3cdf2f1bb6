import Model
import Store

/// Counts what the devices of a run did, by arm.
struct FeedbackArmsCount {
    private let run: Run
    private let goals: [FeedbackGoal]

    init(_ run: Run, _ goals: [FeedbackGoal]) {
        self.run = run
        self.goals = goals
    }

    /// Counts every device of the frozen audience, whatever became of its push. A device belongs to the arm that the
    /// freeze gave it. A device that left the store has no events left, so it counts as not reached: only a push shows
    /// that a device is gone, so without such devices the share of the treated arm would be too high.
    func count<Session: SQLSession>(_ db: Session) throws -> [FeedbackGoal: FeedbackArms] {
        let campaign = run.definition.campaign
        let split = CampaignSplit(campaign)
        var none = FeedbackArms()
        none.variants = campaign.variants.map { _ in FeedbackArms.Arm() }
        let hasBestHour = run.definition.bestHours != nil
        var arms = goals.map { _ in none }
        let dialect = Session.dialect
        // The half of a user's devices is not stored. A device that left the store counts in either half, at random.
        let needsUser = hasBestHour && campaign.dedupe == .user
        let user = needsUser ? "(SELECT user_id FROM device WHERE id = sent.device_id)" : "NULL"
        var values: [any SQLValue] = [run.startedAt ?? run.createdAt]
        let own = [
            "sent.device_id", "CAST(\(user) AS text)", "sent.stage", "sent.variant",
            "coalesce(sent.reason = '\(SuppressionReason.holdout.rawValue)', FALSE)",
        ]
        let columns = goals.map { goal in self.columns(goal, &values, dialect) }
        // The stage that decides on the variant of the rest chose its devices' variants at random. The rest got one
        // variant.
        let deciding = campaign.decidingStage
        try db.each(
            .once(
                """
                SELECT \((own + columns).joined(separator: ", "))
                FROM \(dialect.deliveries(of: run.id, as: "sent")) WHERE \(dialect.isOf(run: run.id, "sent"))
                """), values: values
        ) { row in
            let device = split.number(of: try row.int64(0), user: try row.textOrNil(1))
            let (stage, variant, isHeldOut) = (try row.intOrNil(2), try row.intOrNil(3), try row.bool(4))
            let isCompared = deciding == nil || stage == deciding
            for index in goals.indices {
                let first = own.count + Self.goalColumns * index
                let isReached = try row.bool(first)
                let value = try row.int64OrNil(first + 1) ?? 0
                if try row.bool(first + 2) { arms[index].namedPush += 1 }
                if isHeldOut {
                    arms[index].heldOut.add(isReached, value)
                } else {
                    arms[index].treated.add(isReached, value)
                    // A damaged row may name a variant that the campaign lacks.
                    if let variant, isCompared, arms[index].variants.indices.contains(variant) {
                        arms[index].variants[variant].add(isReached, value)
                    }
                    if hasBestHour {
                        let half: WritableKeyPath<FeedbackArms, FeedbackArms.Arm> =
                            split.getsOwnHour(device) ? \.ownHour : \.usualHour
                        arms[index][keyPath: half].add(isReached, value)
                    }
                }
            }
        }
        return Dictionary(zip(goals, arms)) { first, _ in first }
    }

    /// The number of columns of ``columns(_:_:_:)``.
    private static let goalColumns = 3

    /// Returns whether a device reached a goal, the sum of its values, and whether an event of the goal that may lack a
    /// push names one. `$1` is the start of the run.
    private func columns(_ goal: FeedbackGoal, _ values: inout [any SQLValue], _ dialect: SQLDialect) -> String {
        let first = values.count + 1
        values += [goal.kind.rawValue, goal.name, Int64(goal.within / .milliseconds(1))] as [any SQLValue]
        let push = goal.kind.isAboutPush ? "AND event.run_id = \(run.id) " : ""
        // A run that begins late sends to earlier waves, too.
        let start = "CASE WHEN sent.wave > $1 THEN sent.wave ELSE $1 END"
        let done = """
            FROM feedback_event AS event
            WHERE event.device_id = sent.device_id \(push)AND event.kind = $\(first) AND event.name = $\(first + 1)
                AND event.happened_at >= \(start) AND event.happened_at < \(start) + $\(first + 2)
            """
        let named = goal.kind.isAboutPush ? "FALSE" : "EXISTS (SELECT 1 \(done) AND event.run_id <> 0)"
        return "EXISTS (SELECT 1 \(done)), (SELECT \(dialect.sumOfValues("event.value_micros")) \(done)), \(named)"
    }
}

extension FeedbackArms.Arm {
    fileprivate mutating func add(_ isReached: Bool, _ value: Int64) {
        devices += 1
        if isReached { reached += 1 }
        valueMicros = valueMicros.saturatingSum(value)
    }
}
