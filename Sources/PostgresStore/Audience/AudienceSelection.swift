import Model
import Store
import RelationalStore

/// An audience within its topic.
struct AudienceSelection {
    /// A condition on `device`.
    let sql: String
    let values: [any PostgresValue]
    /// Of a campaign, the devices of each stage that is for seeds; they are selected as well.
    var seeds: [Set<Int64>] = []

    init(_ db: PostgresSession, _ audience: AudienceExpression, topic: String, now: Timestamp) throws {
        var condition = try AudienceCompiler(db, now: now).condition(for: audience)
        sql = "device.topic_id = \(condition.add(try Self.id(ofTopic: topic, db))) AND \(condition.sql)"
        values = condition.values
    }

    /// Of a correction, those whom the other run reached or may have reached.
    static func of(
        _ definition: RunDefinition, devices: [Int64]?, now: Timestamp, _ db: PostgresSession
    ) throws -> AudienceSelection {
        guard let correction = definition.correction else {
            return try of(definition.campaign, devices: devices, now: now, db)
        }
        return AudienceSelection(
            sql: """
                device.topic_id = $1 AND EXISTS (
                    SELECT 1 FROM \(DeliveryTable(run: correction.run).name) AS sent
                    WHERE sent.device_id = device.id AND \(ReachedDelivery.condition)
                )
                """,
            values: [try id(ofTopic: definition.campaign.deviceTopic, db)])
    }

    /// With the seeds of its stages.
    ///
    /// - Parameter devices: those of an `audience_sql`, see ``PostgresDatabase/analystDevices(_:now:bounds:)``.
    static func of(
        _ campaign: Campaign, devices: [Int64]?, now: Timestamp, _ db: PostgresSession
    ) throws -> AudienceSelection {
        let selection =
            if let devices {
                AudienceSelection(
                    sql: "device.topic_id = $1 AND device.id = ANY ($2)",
                    values: [try id(ofTopic: campaign.deviceTopic, db), devices])
            } else {
                try AudienceSelection(db, campaign.audience.expression, topic: campaign.deviceTopic, now: now)
            }
        return try selection.and(seeds(campaign, now: now, db), of: campaign, db)
    }

    /// When the app was last seen on a device or registered there, in ms; where nobody said, when an import named its token.
    static let seenSQL = """
        coalesce(greatest(device.last_seen_at, device.registered_at),
            (SELECT heard_at FROM token_heard WHERE device_id = device.id), 0)
        """

    /// Tells a policy that goes by users of all devices that have one.
    ///
    /// - Parameter run: of a freeze that was cut short; nil: nothing is written yet.
    func tellUsers(_ policy: inout FreezePolicy, cutShort run: Int64?, _ db: PostgresSession) throws {
        guard policy.goesByUser else { return }
        let written = run.map { "FROM \(DeliveryTable(run: $0).name) AS written WHERE written.device_id = device.id" }
        let reasons = FreezePolicy.reasons.map { "'\($0.rawValue)'" }.joined(separator: ", ")
        let wasSent = written.map {
            "(SELECT NOT (state = \(DeliveryState.suppressed.code) AND reason IN (\(reasons))) \($0))"
        }
        try db.each(
            .once(
                """
                SELECT device.id, device.user_id, device.status, device.alerts_allowed, device.time_zone, \(Self.seenSQL),
                    \(wasSent ?? "NULL::boolean")
                FROM device
                WHERE device.user_id <> '' AND \(written.map { "((\(sql)) OR EXISTS (SELECT 1 \($0)))" } ?? sql)
                ORDER BY device.user_id COLLATE "C"
                """), values: values
        ) { row in
            let zone = try row.textOrNil(4)
            policy.see(
                try row.int64(0), of: try row.text(1), status: DeviceStatus(code: try row.int64(2)),
                alertsAllowed: try row.boolOrNil(3) ?? true, zone: { zone }, seenAt: try row.int64(5),
                wasSent: try row.boolOrNil(6))
        }
    }

    private static func seeds(_ campaign: Campaign, now: Timestamp, _ db: PostgresSession) throws -> [Set<Int64>] {
        try campaign.seeds.map { stage, expression in
            let selection = try AudienceSelection(db, expression, topic: campaign.deviceTopic, now: now)
            let rows = try db.rows(
                .once("SELECT device.id FROM device WHERE \(selection.sql) LIMIT \(Stage.seedsMax + 1)"),
                values: selection.values)
            guard rows.count <= Stage.seedsMax else {
                throw StoreError.tooManySeeds(stage: stage, devices: rows.count, audience: nil)
            }
            return Set(try rows.map { try $0.int64(0) })
        }
    }

    private func and(
        _ seeds: [Set<Int64>], of campaign: Campaign, _ db: PostgresSession
    ) throws -> AudienceSelection {
        guard seeds.contains(where: { !$0.isEmpty }) else {
            return AudienceSelection(sql: sql, values: values, seeds: seeds)
        }
        let devices = seeds.reduce(into: Set()) { $0.formUnion($1) }.sorted()
        let selection = AudienceSelection(
            sql: "(\(sql) OR device.id = ANY ($\(values.count + 1)))", values: values + [devices], seeds: seeds)
        for ((stage, _), own) in zip(campaign.seeds, seeds) {
            let audience = try selection.count(upTo: Stage.audienceCounted(forSeeds: own.count), db)
            guard !Stage.isTooMany(seeds: own.count, of: audience) else {
                throw StoreError.tooManySeeds(stage: stage, devices: own.count, audience: audience)
            }
        }
        return selection
    }

    private func count(upTo most: Int, _ db: PostgresSession) throws -> Int {
        try db.rows(
            .once("SELECT count(*) FROM (SELECT 1 FROM device WHERE \(sql) LIMIT \(most)) AS counted"), values: values
        ).first?.int(0) ?? 0
    }

    private init(sql: String, values: [any PostgresValue], seeds: [Set<Int64>] = []) {
        self.sql = sql
        self.values = values
        self.seeds = seeds
    }

    /// One that no device has where nobody named the topic yet.
    private static func id(ofTopic name: String, _ db: PostgresSession) throws -> Int64 {
        try db.first("SELECT id FROM topic WHERE name = $1", name) { try $0.int64(0) } ?? 0
    }
}
