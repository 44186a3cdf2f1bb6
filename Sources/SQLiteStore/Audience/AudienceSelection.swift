import Foundation
import GRDB
import Model
import RelationalStore
import Store

/// An audience within its topic.
struct AudienceSelection {
    /// A condition on `device`.
    let sql: String
    var arguments: [String: DatabaseValue]
    /// Of a campaign, the devices of each stage that is for seeds; they are selected as well.
    var seeds: [Set<Int64>] = []

    init(_ db: Database, _ audience: AudienceExpression, topic: String, now: Timestamp) throws {
        let condition = try AudienceCompiler(db, now: now).condition(for: audience)
        sql = "device.topic_id = :topic AND \(condition.sql)"
        arguments = condition.arguments
        arguments["topic"] = try Self.id(ofTopic: topic, db)
    }

    /// Of a correction, those whom the other run reached or may have reached.
    static func with<Value>(
        _ definition: RunDefinition, now: Timestamp, _ db: Database, _ body: (AudienceSelection) throws -> Value
    ) throws -> Value {
        guard let correction = definition.correction else { return try with(definition.campaign, now: now, db, body) }
        return try body(
            AudienceSelection(
                sql: """
                    device.topic_id = :topic AND EXISTS (
                        SELECT 1 FROM delivery AS sent
                        WHERE sent.run_id = :corrected AND sent.device_id = device.id AND \(ReachedDelivery.condition)
                    )
                    """,
                arguments: [
                    "topic": try id(ofTopic: definition.campaign.deviceTopic, db),
                    "corrected": correction.run.databaseValue,
                ]))
    }

    /// For an `audience_sql`, its devices are gathered first, in a temporary table of the connection: `body` must be
    /// done with its statements when it returns.
    static func with<Value>(
        _ campaign: Campaign, now: Timestamp, _ db: Database, _ body: (AudienceSelection) throws -> Value
    ) throws -> Value {
        let seeds = try seeds(campaign, now: now, db)
        guard let sql = campaign.audienceSQL else {
            let selection = try AudienceSelection(
                db, campaign.audience.expression, topic: campaign.deviceTopic, now: now)
            return try body(selection.and(seeds, of: campaign, db))
        }
        return try AnalystAudience.with(sql, app: campaign.topic, now: now, db) { condition in
            let selection = AudienceSelection(
                sql: "device.topic_id = :topic AND \(condition)",
                arguments: ["topic": try id(ofTopic: campaign.deviceTopic, db)])
            return try body(selection.and(seeds, of: campaign, db))
        }
    }

    private static func seeds(_ campaign: Campaign, now: Timestamp, _ db: Database) throws -> [Set<Int64>] {
        try campaign.seeds.map { stage, expression in
            let selection = try AudienceSelection(db, expression, topic: campaign.deviceTopic, now: now)
            let devices = try Int64.fetchSet(
                db, sql: "SELECT device.id FROM device WHERE \(selection.sql) LIMIT \(Stage.seedsMax + 1)",
                arguments: StatementArguments(selection.arguments))
            guard devices.count <= Stage.seedsMax else {
                throw StoreError.tooManySeeds(stage: stage, devices: devices.count, audience: nil)
            }
            return devices
        }
    }

    private func and(_ seeds: [Set<Int64>], of campaign: Campaign, _ db: Database) throws -> AudienceSelection {
        guard seeds.contains(where: { !$0.isEmpty }) else {
            return AudienceSelection(sql: sql, arguments: arguments, seeds: seeds)
        }
        let devices = seeds.reduce(into: Set()) { $0.formUnion($1) }.sorted()
        let selection = AudienceSelection(
            sql: "(\(sql) OR device.id IN (SELECT value FROM json_each(:seeds)))",
            arguments: arguments.merging(["seeds": StoredJSON.array(devices).databaseValue]) { $1 }, seeds: seeds)
        for ((stage, _), own) in zip(campaign.seeds, seeds) {
            let audience = try selection.count(upTo: Stage.audienceCounted(forSeeds: own.count), db)
            guard !Stage.isTooMany(seeds: own.count, of: audience) else {
                throw StoreError.tooManySeeds(stage: stage, devices: own.count, audience: audience)
            }
        }
        return selection
    }

    private func count(upTo most: Int, _ db: Database) throws -> Int {
        try Int.fetchOne(
            db, sql: "SELECT count(*) FROM (SELECT 1 FROM device WHERE \(sql) LIMIT \(most))",
            arguments: StatementArguments(arguments)) ?? 0
    }

    private init(sql: String, arguments: [String: DatabaseValue], seeds: [Set<Int64>] = []) {
        self.sql = sql
        self.arguments = arguments
        self.seeds = seeds
    }

    private static func id(ofTopic name: String, _ db: Database) throws -> DatabaseValue {
        try Int64.fetchOne(db, sql: "SELECT id FROM topic WHERE name = :name", arguments: ["name": name])?
            .databaseValue ?? .null
    }
}

extension AudienceSelection {
    /// When the app was last seen on a device or registered there, in ms; where nobody said, when an import named its token.
    static let seenSQL = """
        coalesce(
            max(coalesce(device.last_seen_at, device.registered_at), coalesce(device.registered_at, device.last_seen_at)),
            (SELECT heard_at FROM token_heard WHERE device_id = device.id), 0)
        """

    /// Tells a policy that goes by users of all devices that have one.
    ///
    /// - Parameter run: of a freeze that was cut short; nil: nothing is written yet.
    func tellUsers(_ policy: inout FreezePolicy, cutShort run: Int64?, _ db: Database) throws {
        guard policy.goesByUser else { return }
        var arguments = arguments
        if let run { arguments["run"] = run.databaseValue }
        let written = "FROM delivery WHERE run_id = :run AND device_id = device.id"
        let reasons = SQLConstants.list(FreezePolicy.reasons.map(\.rawValue))
        let rows = try RowStatement(
            db,
            """
            SELECT device.id, device.user_id, device.status, device.alerts_allowed, device.time_zone, \(Self.seenSQL),
                \(run == nil ? "NULL" : """
                    (SELECT NOT (state = \(DeliveryState.suppressed.rawValue) AND reason IN (\(reasons))) \(written))
                    """)
            -- A sort takes half as long as the way through the index, which looks each device up somewhere else.
            FROM device NOT INDEXED
            WHERE device.user_id <> '' AND \(run == nil ? sql : "((\(sql)) OR EXISTS (SELECT 1 \(written)))")
            ORDER BY device.user_id
            """, arguments: StatementArguments(arguments))
        defer { rows.reset() }
        while try rows.step() {
            policy.see(
                rows.int64(0), of: rows.text(1) ?? "", status: DeviceStatus(code: rows.int64(2)),
                alertsAllowed: rows.isNull(3) || rows.int64(3) != 0, zone: { rows.text(4) }, seenAt: rows.int64(5),
                wasSent: rows.int64OrNil(6).map { $0 != 0 })
        }
    }
}

/// The devices an `audience_sql` selects, as a condition on `device`: asked once, on a connection of its own, and kept
/// in a temporary table of the reading connection while it is needed. The table lives in a temporary file, so that memory
/// does not grow with it.
enum AnalystAudience {
    /// Throws `StoreError.audienceSQL`.
    static func with<Value>(
        _ sql: String, app: String, now: Timestamp, _ db: Database, _ body: (String) throws -> Value
    ) throws -> Value {
        try drop(db)
        try db.execute(sql: "CREATE TEMP TABLE audience_sql_device (id INTEGER PRIMARY KEY) STRICT")
        try fill(db, sql, app: app, now: now)
        let result = Result { try body("device.id IN (SELECT id FROM temp.audience_sql_device)") }
        // After a cancellation nothing can be dropped any more; the next audience does it.
        let end = Result { try drop(db) }
        let value = try result.get()
        try end.get()
        return value
    }

    private static func fill(_ db: Database, _ sql: String, app: String, now: Timestamp) throws {
        let insertion = try RowStatement(
            db, "INSERT OR IGNORE INTO temp.audience_sql_device (id) VALUES (:id)", arguments: ["id": nil])
        let id = insertion.parameter(":id")
        let connection = try AnalystConnection(
            address: StoreReading.address(of: db), app: app, timeLimit: StoreLimits.audienceSQLTime,
            isCancelled: {
                // A read that is cancelled carries out no statement any more.
                do { return try Int.fetchOne(db, sql: "SELECT 1") == nil } catch { return true }
            })
        try connection.select(sql, now: now) { device in
            try insertion.bind(device, id)
            try insertion.run()
        }
    }

    private static func drop(_ db: Database) throws {
        try db.execute(sql: "DROP TABLE IF EXISTS temp.audience_sql_device")
    }
}
