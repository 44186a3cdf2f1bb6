import GRDB
import Store
import Model

/// Finds the stored devices a record may mean.
struct DeviceIdentity {
    struct Known {
        var id: Int64
        var token: [UInt8]
        var environment: Int64
        var registeredAt: Int64?
        var installation: String?

        func has(_ record: DeviceRecord) -> Bool {
            environment == record.environment.code && token == record.token.bytes
        }

        /// Whether this registration is newer than the record's; then the record says nothing about tokens.
        func isNewer(than record: DeviceRecord) -> Bool {
            guard let registeredAt, let recorded = record.registeredAt else { return false }
            return recorded.milliseconds < registeredAt
        }
    }

    private let byInstallation: RowStatement
    private let byToken: RowStatement

    init(_ db: Database) throws {
        byInstallation = try RowStatement(
            db,
            """
            SELECT id, token, environment, registered_at, installation_id
            FROM device WHERE installation_id = :installation AND topic_id = :topic
            """)
        byToken = try RowStatement(
            db,
            """
            SELECT id, token, environment, registered_at, installation_id
            FROM device WHERE token = :token AND environment = :environment AND topic_id = :topic
            """)
    }

    func device(installation: String, topic: Int64) throws -> Known? {
        try byInstallation.bind(installation, byInstallation.parameter(":installation"))
        try byInstallation.bind(topic, byInstallation.parameter(":topic"))
        return try first(byInstallation)
    }

    func device(token: DeviceToken, environment: PushEnvironment, topic: Int64) throws -> Known? {
        try byToken.bind(token.bytes, byToken.parameter(":token"))
        try byToken.bind(environment.code, byToken.parameter(":environment"))
        try byToken.bind(topic, byToken.parameter(":topic"))
        return try first(byToken)
    }

    private func first(_ statement: RowStatement) throws -> Known? {
        defer { statement.reset() }
        guard try statement.step() else { return nil }
        return Known(
            id: statement.int64(0), token: statement.bytes(1), environment: statement.int64(2),
            registeredAt: statement.int64OrNil(3), installation: statement.text(4))
    }
}
