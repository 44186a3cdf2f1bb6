import GRDB
import Store
import Model

/// An audience within its topic, and who of it is left out whatever it says.
struct AudienceSelection {
    /// A condition on `device`.
    let sql: String
    var arguments: [String: DatabaseValue]

    init(_ db: Database, _ audience: AudienceExpression, topic: String, now: Timestamp) throws {
        let condition = try AudienceCompiler(db, now: now).condition(for: audience)
        sql = "device.topic_id = :topic AND \(condition.sql)"
        arguments = condition.arguments
        arguments["topic"] = try Self.id(ofTopic: topic, db)
    }

    /// For an `audience_sql`, its devices are gathered first, in a temporary table of the connection: `body` must be
    /// done with its statements when it returns.
    static func with<Value>(
        _ campaign: Campaign, now: Timestamp, _ db: Database, _ body: (AudienceSelection) throws -> Value
    ) throws -> Value {
        guard let sql = campaign.audienceSQL else {
            return try body(
                AudienceSelection(db, campaign.audience.expression, topic: campaign.deviceTopic, now: now))
        }
        return try AnalystAudience.with(sql, now: now, db) { condition in
            try body(
                AudienceSelection(
                    sql: "device.topic_id = :topic AND \(condition)",
                    arguments: ["topic": try id(ofTopic: campaign.deviceTopic, db)]))
        }
    }

    private init(sql: String, arguments: [String: DatabaseValue]) {
        self.sql = sql
        self.arguments = arguments
    }

    private static func id(ofTopic name: String, _ db: Database) throws -> DatabaseValue {
        try Int64.fetchOne(db, sql: "SELECT id FROM topic WHERE name = :name", arguments: ["name": name])?
            .databaseValue ?? .null
    }

    /// Nil: sent to.
    static func suppression(status: DeviceStatus, alertsAllowed: Bool, pushType: PushType) -> SuppressionReason? {
        switch status {
        case .gone: .tokenGone
        case .suspended: .wrongEnvironment
        case .active: alertsAllowed || !pushType.showsAlert ? nil : .alertsNotAllowed
        }
    }
}
