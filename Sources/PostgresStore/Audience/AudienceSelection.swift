import Model
import Store

/// An audience within its topic.
struct AudienceSelection {
    /// A condition on `device`.
    let sql: String
    let values: [any PostgresValue]

    init(_ db: PostgresSession, _ audience: AudienceExpression, topic: String, now: Timestamp) throws {
        var condition = try AudienceCompiler(db, now: now).condition(for: audience)
        sql = "device.topic_id = \(condition.add(try Self.id(ofTopic: topic, db))) AND \(condition.sql)"
        values = condition.values
    }

    /// For an `audience_sql`, its devices are gathered first: `body` must be done with its statements when it returns.
    static func with<Value>(
        _ campaign: Campaign, now: Timestamp, _ db: PostgresSession, _ body: (AudienceSelection) throws -> Value
    ) throws -> Value {
        guard let sql = campaign.audienceSQL else {
            return try body(
                AudienceSelection(db, campaign.audience.expression, topic: campaign.deviceTopic, now: now))
        }
        let devices = try AnalystAudience(db).devices(sql, now: now)
        return try body(
            AudienceSelection(
                sql: "device.topic_id = $1 AND device.id = ANY ($2)",
                values: [try id(ofTopic: campaign.deviceTopic, db), devices]))
    }

    private init(sql: String, values: [any PostgresValue]) {
        self.sql = sql
        self.values = values
    }

    /// One that no device has where nobody named the topic yet.
    private static func id(ofTopic name: String, _ db: PostgresSession) throws -> Int64 {
        try db.first("SELECT id FROM topic WHERE name = $1", name) { try $0.int64(0) } ?? 0
    }
}
