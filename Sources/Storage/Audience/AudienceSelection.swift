import GRDB
import Model

/// An audience within its topic, and who of it is left out whatever the expression says.
struct AudienceSelection {
    let sql: String
    let arguments: StatementArguments

    init(_ db: Database, _ audience: AudienceExpression, topic: String, now: Timestamp) throws {
        var condition = try AudienceCompiler(db, now: now).condition(for: audience)
        condition.arguments["topic"] =
            try Int64.fetchOne(db, sql: "SELECT id FROM topic WHERE name = :name", arguments: ["name": topic])?
            .databaseValue ?? .null
        sql = "device.topic_id = :topic AND \(condition.sql)"
        arguments = StatementArguments(condition.arguments)
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
