import Model
import Store

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

    /// A condition on the delivery `sent`: it reached the device, or may have.
    static let wasReached =
        "(sent.doubts > 0 OR sent.state IN (\(DeliveryState.accepted.code), \(DeliveryState.unknown.code)))"

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
                    WHERE sent.device_id = device.id AND \(wasReached)
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
        return selection.and(try seeds(campaign, now: now, db))
    }

    private static func seeds(_ campaign: Campaign, now: Timestamp, _ db: PostgresSession) throws -> [Set<Int64>] {
        try (campaign.stages ?? []).compactMap(\.seeds).map { expression in
            let selection = try AudienceSelection(db, expression, topic: campaign.deviceTopic, now: now)
            let rows = try db.rows(
                .once("SELECT device.id FROM device WHERE \(selection.sql) LIMIT \(Stage.seedsMax + 1)"),
                values: selection.values)
            guard rows.count <= Stage.seedsMax else { throw StoreError.tooManySeeds }
            return Set(try rows.map { try $0.int64(0) })
        }
    }

    private func and(_ seeds: [Set<Int64>]) -> AudienceSelection {
        guard seeds.contains(where: { !$0.isEmpty }) else {
            return AudienceSelection(sql: sql, values: values, seeds: seeds)
        }
        let devices = seeds.reduce(into: Set()) { $0.formUnion($1) }.sorted()
        return AudienceSelection(
            sql: "(\(sql) OR device.id = ANY ($\(values.count + 1)))", values: values + [devices], seeds: seeds)
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
