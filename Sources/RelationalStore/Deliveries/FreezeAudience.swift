package import Model
package import Store

/// The devices that the freeze of a run reads, and the policy that decides about each device.
package struct FreezeAudience {
    private var policy: FreezePolicy
    /// Returns the opens of a device; `nil` in a run without `best_hour`.
    private let opens: ((Int64) throws -> [Int64])?
    /// The send order of a correction; `nil` for any other run.
    private let sequence: CorrectionSequence?
    /// The last device that an earlier freeze of the run wrote, 0 if there is none.
    private let written: Int64
    /// The query for the devices, in order of id: the columns id, environment, token generation, status,
    /// `alerts_allowed`, locale, app version, time zone, country, and those of ``userColumn`` and ``settledColumn``.
    package let query: SQLStatement
    /// The column of the device's user; `nil` if no decision depends on it.
    package let userColumn: Int?
    /// The column of the time at which the corrected run settled the device's delivery; `nil` if it corrects none.
    package let settledColumn: Int?
    package let values: [any SQLValue]

    package init<Session: SQLSession>(_ db: Session, _ run: Run, _ selection: AudienceSelection) throws {
        let (definition, dialect) = (run.definition, Session.dialect)
        written =
            try db.first(
                .once(
                    """
                    SELECT coalesce(max(device_id), 0) FROM \(dialect.deliveries(of: run.id))
                    WHERE \(dialect.isOf(run: run.id))
                    """)
            ) { try $0.int64(0) } ?? 0
        let waves = RecipientWaves(definition, startedAt: run.startedAt ?? run.createdAt)
        policy = FreezePolicy(definition.campaign, waves: waves, seeds: selection.seeds)
        let bestHour = try db.bestHour(definition.campaign, waves)
        policy.bestHour = bestHour?.policy
        opens = bestHour?.opens
        try selection.tellUsers(&policy, cutShort: written > 0 ? run.id : nil, db)
        sequence = try definition.correction.map {
            CorrectionSequence(try RunRow.require(db, $0.run), plannedAt: definition.plannedAt)
        }
        userColumn = policy.goesByUser ? Self.columns : nil
        settledColumn = definition.correction == nil ? nil : Self.columns + (policy.goesByUser ? 1 : 0)
        query = .once(Self.text(definition, policy, after: policy.hasStages ? 0 : written, selection, dialect))
        values = selection.values
    }

    /// Whether ``decide(_:settledAt:_:)`` executes statements of its own.
    package var readsOpens: Bool { opens != nil }

    /// The number of columns that every query has.
    private static let columns = 9

    private static func text(
        _ definition: RunDefinition, _ policy: FreezePolicy, after: Int64, _ selection: AudienceSelection,
        _ dialect: SQLDialect
    ) -> String {
        let corrected = definition.correction.map { correction in
            """
            , (
                SELECT changed_at FROM \(dialect.deliveries(of: correction.run, as: "sent"))
                WHERE \(dialect.isOf(run: correction.run, "sent")) AND sent.device_id = device.id
            )
            """
        }
        return """
            SELECT device.id, device.environment, device.token_generation, device.status, device.alerts_allowed,
                device.locale, device.app_version, device.time_zone, device.country
                \(policy.goesByUser ? ", device.user_id" : "")\(corrected ?? "")
            FROM device WHERE device.id > \(after) AND \(selection.sql) ORDER BY device.id
            """
    }

    /// Returns the decision about the next device, or `nil` if its delivery is already written. A sample of stages
    /// depends on all earlier devices, so their decisions are repeated after an interruption.
    ///
    /// - Parameter settledAt: when the corrected run settled the device's delivery.
    package mutating func decide(
        _ device: Int64, settledAt: Timestamp?,
        _ decide: (inout FreezePolicy) throws -> FreezePolicy.Decision
    ) throws -> FreezePolicy.Decision? {
        if let opens { policy.opens = try opens(device) }
        var decision = try decide(&policy)
        sequence?.schedule(&decision, settledAt: settledAt)
        return device > written ? decision : nil
    }
}

/// A delivery that the freeze writes.
package struct FrozenDelivery: Sendable {
    package var device: Int64
    package var environment: Int64
    package var generation: Int64
    package var decision: FreezePolicy.Decision
    /// The index into the profiles of its batch.
    package var profile: Int

    package init(
        device: Int64, environment: Int64, generation: Int64, decision: FreezePolicy.Decision, profile: Int
    ) {
        self.device = device
        self.environment = environment
        self.generation = generation
        self.decision = decision
        self.profile = profile
    }
}

/// The deliveries that one transaction of the freeze writes, in order of device.
package struct FrozenDeliveries: Sendable {
    package var deliveries: [FrozenDelivery] = []
    package var profiles = BatchProfiles()
    /// Whether these are all deliveries of the run.
    private var isWhole = false

    package init() {}

    /// Creates the batch of one device chosen by a person.
    package init(_ chosen: ChosenDevice) {
        isWhole = true
        let profile = profiles.index(chosen.profile.key) { chosen.profile }
        deliveries = [
            FrozenDelivery(
                device: chosen.device, environment: chosen.environment, generation: chosen.generation,
                decision: chosen.decision, profile: profile)
        ]
    }

    /// The numbers for the progress of the freeze.
    package var summary: FrozenBatch {
        var suppressed: [SuppressionReason: Int] = [:]
        for delivery in deliveries {
            if let reason = delivery.decision.suppression { suppressed[reason, default: 0] += 1 }
        }
        return FrozenBatch(audience: deliveries.count, suppressed: suppressed)
    }

    /// The change of the run's counts.
    package var change: DeliveryCounts {
        var change = DeliveryCounts()
        change.audience = deliveries.count
        change.suppressed = deliveries.count { $0.decision.suppression != nil }
        change.pending = change.audience - change.suppressed
        return change
    }

    /// Adds the batch to the counts, in the transaction that writes its deliveries.
    package func count(run: Int64, at now: Timestamp, _ db: some SQLSession) throws {
        var sizes: [Int: Int] = [:]
        for delivery in deliveries { if let stage = delivery.decision.stage { sizes[stage, default: 0] += 1 } }
        try RunStages.grow(sizes, run: run, db)
        if isWhole { _ = try db.execute("UPDATE run SET is_frozen = true WHERE id = $1", run) }
        _ = try RunRow.add(change, to: run, at: now, db)
    }
}
