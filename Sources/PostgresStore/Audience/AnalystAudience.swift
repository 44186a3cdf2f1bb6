import Model
import Store

/// The devices that an `audience_sql` selects: asked within the snapshot of `db`, as a role that may read the analysts' views
/// and nothing else, for so long.
struct AnalystAudience {
    static let role = "fanfare_analyst"

    private let db: PostgresSession
    private let timeLimit: Duration

    init(_ db: PostgresSession, timeLimit: Duration = AudienceSQLText.timeLimit) {
        self.db = db
        self.timeLimit = timeLimit
    }

    /// Throws `StoreError.audienceSQL`.
    func devices(_ sql: String, now: Timestamp) throws -> [Int64] {
        let text = try AnalystText(sql)
        try db.execute(.once("SAVEPOINT analyst"))
        try takeRole()
        // Over with the role, and the time limit.
        let devices = try select(text, now: now)
        try db.execute(.once("ROLLBACK TO SAVEPOINT analyst"))
        return devices
    }

    private func takeRole() throws {
        do {
            try db.execute(.once("SET LOCAL ROLE \(Self.role)"))
            // Settings that change how a text is read are no user's or database's matter here.
            try db.execute(.once("SET LOCAL standard_conforming_strings = on"))
            try db.execute(.once("SET LOCAL statement_timeout = \(timeLimit.wholeMilliseconds)"))
        } catch PostgresError.refused {
            throw StoreError.audienceSQL(.noRole(setUp: try setUp()))
        }
    }

    private func select(_ text: AnalystText, now: Timestamp) throws -> [Int64] {
        var devices: Set<Int64> = []
        var row = 0
        do {
            try db.each(.once(text.sql), values: text.usesNow ? [now] : []) { fields in
                row += 1
                guard fields.columns == 1 else { throw StoreError.audienceSQL(.columns(fields.columns)) }
                guard Int64.readableOIDs.contains(fields.type(0)), let id = try fields.int64OrNil(0) else {
                    throw StoreError.audienceSQL(.notAnID(row: row, kind: kind(fields)))
                }
                devices.insert(id)
            }
        } catch PostgresError.refused(let fault, _) {
            throw StoreError.audienceSQL(words(fault))
        }
        return devices.sorted()
    }

    /// By its number in `pg_type`.
    private func kind(_ fields: PostgresRow) -> String {
        guard fields.field(0) != nil else { return "NULL" }
        return switch fields.type(0) {
        case 700, 701, 1700: "a fraction"
        case 25, 1042, 1043, 705: "a text"
        case 17: "a blob"
        default: "of another type"
        }
    }

    private func words(_ fault: ServerFault) -> AudienceSQLFault {
        if fault.kind == .cancelled { return .tooSlow(limit: timeLimit) }
        guard fault.kind == .permission else { return .invalid(fault.message) }
        let thing = fault.message.replacing("permission denied for ", with: "")
        let isOurs = AnalystViewNames.all.contains { thing.hasSuffix(" \($0)") } || thing.hasPrefix("schema ")
        // The transaction is at its end: what is to be granted is said without asking the server.
        return isOurs
            ? .noRole(setUp: Self.grants(user: "the store's user", schema: "its schema")) : .refused("reading \(thing)")
    }

    /// What an administrator runs once.
    private func setUp() throws -> String {
        try db.execute(.once("ROLLBACK TO SAVEPOINT analyst"))
        let names = try db.rows("SELECT quote_ident(session_user), quote_ident(current_schema())").first
        return Self.grants(user: try names?.text(0) ?? "", schema: try names?.text(1) ?? "")
    }

    private static func grants(user: String, schema: String) -> String {
        """
        CREATE ROLE \(role) NOLOGIN; GRANT \(role) TO \(user); GRANT USAGE ON SCHEMA \(schema) TO \(role); \
        GRANT SELECT ON \(AnalystViewNames.all.joined(separator: ", ")) TO \(role)
        """
    }
}
