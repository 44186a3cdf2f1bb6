package import Model
package import Store

/// An audience within its topic.
package struct AudienceSelection: Sendable {
    private var condition: AudienceCondition
    /// The seed devices, by stage of the campaign. They are part of the selection.
    package private(set) var seeds: [Set<Int64>] = []

    /// The condition on `device`.
    package var sql: String { condition.sql }
    /// The values for `$1`, `$2` and so on.
    package var values: [any SQLValue] { condition.values }

    /// Creates a selection within a topic.
    ///
    /// - Parameter condition: the condition on the topic's devices.
    private init(_ condition: AudienceCondition, topic: String, _ db: some SQLSession) throws {
        self.condition = condition
        // No device has the topic 0.
        let id = try db.first("SELECT id FROM topic WHERE name = $1", topic) { try $0.int64(0) } ?? 0
        self.condition.sql = "device.topic_id = \(self.condition.add(id)) AND \(condition.sql)"
    }

    package init(_ db: some SQLSession, _ audience: AudienceExpression, topic: String, now: Timestamp) throws {
        try self.init(db.condition(for: audience, now: now), topic: topic, db)
    }

    /// Returns the devices of a run. A correction selects the devices that the other run reached or may have reached.
    ///
    /// - Parameter analyst: the devices of an `audience_sql`.
    package static func of<Session: SQLSession>(
        _ definition: RunDefinition, analyst: AudienceCondition?, now: Timestamp, _ db: Session
    ) throws -> AudienceSelection {
        guard let correction = definition.correction else {
            return try of(definition.campaign, analyst: analyst, now: now, db)
        }
        let reached = AudienceCondition(
            """
            EXISTS (
                SELECT 1 FROM \(Session.dialect.deliveries(of: correction.run, as: "sent"))
                WHERE \(Session.dialect.isOf(run: correction.run, "sent")) AND sent.device_id = device.id
                    AND \(ReachedDelivery.condition)
            )
            """)
        return try AudienceSelection(reached, topic: definition.campaign.deviceTopic, db)
    }

    /// Returns the devices of a campaign, with the seeds of its stages.
    package static func of(
        _ campaign: Campaign, analyst: AudienceCondition?, now: Timestamp, _ db: some SQLSession
    ) throws -> AudienceSelection {
        let condition = try analyst ?? db.condition(for: campaign.audience.expression, now: now)
        return try AudienceSelection(condition, topic: campaign.deviceTopic, db)
            .and(seeds(campaign, now: now, db), of: campaign, db)
    }

    private static func seeds(_ campaign: Campaign, now: Timestamp, _ db: some SQLSession) throws -> [Set<Int64>] {
        try campaign.seeds.map { stage, expression in
            let selection = try AudienceSelection(db, expression, topic: campaign.deviceTopic, now: now)
            let devices = try db.all(
                .once("SELECT device.id FROM device WHERE \(selection.sql) LIMIT \(Stage.seedsMax + 1)"),
                values: selection.values
            ) { try $0.int64(0) }
            guard devices.count <= Stage.seedsMax else {
                throw StoreError.tooManySeeds(stage: stage, devices: devices.count, audience: nil)
            }
            return Set(devices)
        }
    }

    private func and<Session: SQLSession>(
        _ seeds: [Set<Int64>], of campaign: Campaign, _ db: Session
    ) throws -> AudienceSelection {
        var selection = self
        selection.seeds = seeds
        guard seeds.contains(where: { !$0.isEmpty }) else { return selection }
        let devices = seeds.reduce(into: Set()) { $0.formUnion($1) }.sorted()
        _ = selection.condition.add(devices)
        selection.condition.sql = "(\(sql) OR device.id \(Session.dialect.isAny(selection.values.count)))"
        for ((stage, _), own) in zip(campaign.seeds, seeds) {
            let audience = try selection.count(upTo: Stage.audienceCounted(forSeeds: own.count), db)
            guard !Stage.isTooMany(seeds: own.count, of: audience) else {
                throw StoreError.tooManySeeds(stage: stage, devices: own.count, audience: audience)
            }
        }
        return selection
    }

    private func count(upTo most: Int, _ db: some SQLSession) throws -> Int {
        try db.count("SELECT count(*) FROM (SELECT 1 FROM device WHERE \(sql) LIMIT \(most)) AS counted", values)
    }
}

extension AudienceSelection {
    /// The time in milliseconds when the app was last seen on a device or registered there. If neither time is
    /// known, it is the time when an import last named the device's token.
    package static func seen(_ dialect: SQLDialect) -> String {
        let (seen, registered) = ("device.last_seen_at", "device.registered_at")
        // SQLite's `max` returns NULL if one of its values is NULL.
        let later = "\(dialect.greatest)(coalesce(\(seen), \(registered)), coalesce(\(registered), \(seen)))"
        return "coalesce(\(later), (SELECT heard_at FROM token_heard WHERE device_id = device.id), 0)"
    }

    /// Passes all devices that have a user to the policy, if the policy decides by user.
    ///
    /// - Parameter run: the run of an interrupted freeze; `nil` if no delivery is written yet.
    package func tellUsers<Session: SQLSession>(
        _ policy: inout FreezePolicy, cutShort run: Int64?, _ db: Session
    ) throws {
        guard policy.goesByUser else { return }
        let dialect = Session.dialect
        let written = run.map { run in
            """
            FROM \(dialect.deliveries(of: run, as: "written"))
            WHERE \(dialect.isOf(run: run, "written")) AND written.device_id = device.id
            """
        }
        let reasons = SQLConstants.list(FreezePolicy.reasons.map(\.rawValue))
        let wasSent = written.map {
            "(SELECT NOT (state = \(DeliveryState.suppressed.code) AND reason IN (\(reasons))) \($0))"
        }
        // On SQLite a sort takes half the time of the index, which needs a separate look-up for each device.
        let users = """
            SELECT device.id, device.user_id, device.status, device.alerts_allowed, device.time_zone,
                \(Self.seen(dialect)), \(wasSent ?? "CAST(NULL AS boolean)")
            FROM device \(dialect.hint("NOT INDEXED"))
            WHERE device.user_id <> '' AND \(written.map { "((\(sql)) OR EXISTS (SELECT 1 \($0)))" } ?? sql)
            ORDER BY \(dialect.bytes("device.user_id"))
            """
        try db.each(.once(users), values: values) { row in
            let zone = try row.textOrNil(4)
            policy.see(
                try row.int64(0), of: try row.text(1), status: DeviceStatus(code: try row.int64(2)),
                alertsAllowed: try row.boolOrNil(3) ?? true, zone: { zone },
                seenAt: try row.int64(5), wasSent: try row.boolOrNil(6))
        }
    }
}
