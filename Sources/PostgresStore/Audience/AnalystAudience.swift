import Model
package import Store
import RelationalStore

extension PostgresDatabase {
    /// Returns the devices that the `audience_sql` of a campaign selects, or `nil` if the campaign has none. The
    /// query uses a separate connection. Call this before the snapshot that uses the devices.
    ///
    /// - Throws: `StoreError.audienceSQL`.
    func analystCondition(
        _ campaign: Campaign, now: Timestamp, bounds: AnalystAudience = AnalystAudience()
    ) async throws -> AudienceCondition? {
        guard let sql = campaign.audienceSQL else { return nil }
        let text = try AnalystText(sql)
        return try await ReadAllowance.spend { [self] in
            let own = PostgresPool(beside: pool, writers: 0, readers: 1)
            defer { own.shutDown() }
            let devices = try await read(.reading, from: own) { db in
                try bounds.devices(text, app: campaign.topic, now: now, db)
            }
            return AudienceCondition("device.id = ANY ($1)", devices)
        }
    }

    package func audienceSQLObstacle() async throws -> AudienceSQLFault? {
        try await read(.short) { db in try AnalystAudience.obstacle(db) }
    }
}

/// Runs an `audience_sql` within these bounds. The administrator's function (``AdministratorSQL``) runs it as a role
/// that may read only the analysts' views.
struct AnalystAudience {
    /// The time that the server has after the time limit to stop the query. After that, its connection is closed.
    private static let grace: Duration = .seconds(2)

    var timeLimit = AudienceSQLText.timeLimit
    /// The maximum number of ids. They are held in memory, and a statement gets them as one parameter.
    var devicesMax = 20_000_000

    /// - Parameter app: the topic of the campaign. During the transaction the views show only the rows of its app.
    func devices(_ text: AnalystText, app: String, now: Timestamp, _ db: PostgresSession) throws -> [Int64] {
        if let obstacle = try Self.obstacle(db) { throw StoreError.audienceSQL(obstacle) }
        let called = try db.first(
            "SELECT min(proname::text) FROM pg_catalog.pg_proc WHERE proname::text = ANY ($1)", Array(text.fields)
        ) { try $0.textOrNil(0) }
        if let called = called ?? nil { throw StoreError.audienceSQL(.refused("the function \(called) as a column")) }
        try db.execute("SELECT set_config('fanfare.topics', $1::text[]::text, true)", app.topics.sorted())
        try db.execute(.once("SET LOCAL statement_timeout = \(timeLimit.wholeMilliseconds)"))
        db.link.call = db.link.call.extended(by: timeLimit + Self.grace)
        var devices: [Int64] = []
        do {
            try db.each(
                .once("SELECT * FROM \(AdministratorSQL.function)($1, $2, $3)"),
                text.sql, now, devicesMax
            ) { devices.append(try $0.int64(0)) }
        } catch let error as PostgresError {
            guard let fault = fault(error) else { throw error }
            throw StoreError.audienceSQL(fault)
        }
        return devices
    }

    static func obstacle(_ db: PostgresSession) throws -> AudienceSQLFault? {
        let facts = try db.rows(
            """
            SELECT has_function_privilege(pg_proc.oid, 'EXECUTE'),
                prosecdef AND NOT (
                    SELECT bool_or(has_any_column_privilege(proowner, pg_class.oid, 'SELECT')) FROM pg_class
                    WHERE relnamespace = pronamespace AND relname IN ('device', 'provider_token', 'access_token')
                ),
                (
                    SELECT count(*) FROM pg_class
                    WHERE relnamespace = pronamespace AND relname = ANY ($2)
                        AND has_table_privilege(proowner, pg_class.oid, 'SELECT')
                )
            FROM pg_proc
            WHERE oid = to_regprocedure(quote_ident(current_schema()) || $1)
            """, ".\(AdministratorSQL.signature)", AnalystViewNames.all
        ).first
        guard let facts else { return .notSetUp("the database has no function \(AdministratorSQL.function)") }
        guard try facts.bool(1) else {
            return .notSetUp(
                "the role of the function \(AdministratorSQL.function) may read more than the analysts' views")
        }
        guard try facts.int(2) == AnalystViewNames.all.count else {
            return .notSetUp("the role of the function \(AdministratorSQL.function) may not read the analysts' views")
        }
        guard try facts.bool(0) else {
            return .notSetUp("this user may not call the function \(AdministratorSQL.function)")
        }
        return nil
    }

    /// Returns `nil` if the text is not at fault. In the classes for syntax and unsupported features, messages quote
    /// the text. In other classes, messages quote values of rows, so they are dropped.
    private func fault(_ error: PostgresError) -> AudienceSQLFault? {
        if case .timedOut = error { return .tooSlow(limit: timeLimit) }
        guard case .refused(let fault, _) = error else { return nil }
        switch fault.sqlstate {
        case "57014": return .tooSlow(limit: timeLimit)
        case AdministratorSQL.columnsState: return .columns(Int(fault.message) ?? 0)
        case AdministratorSQL.notAnIDState: return Self.notAnID(fault.message)
        case AdministratorSQL.tooManyState: return .tooMany(limit: devicesMax)
        case "42501": return .refused(Self.denied(fault.message))
        // The text writes, takes locks, or is not a query.
        case "25006", "42P11": return .refused("something other than a SELECT")
        case "42P01" where DeliveryTable.isMissing(error): return nil
        default: break
        }
        switch fault.sqlstate.prefix(2) {
        case "42", "0A": return .invalid(fault.message)
        case "08", "53", "57", "58", "XX": return nil
        default: return .invalid("a value in a row has the wrong type for its use (SQLSTATE \(fault.sqlstate))")
        }
    }

    /// Parses a message such as `2 string`.
    private static func notAnID(_ message: String) -> AudienceSQLFault {
        let tokens = message.split(separator: " ")
        let kinds = ["null": "NULL", "fraction": "a fraction", "string": "a text"]
        return .notAnID(
            row: tokens.first.flatMap { Int($0) } ?? 1,
            kind: tokens.last.flatMap { kinds[String($0)] } ?? "of another type")
    }

    /// Parses a message such as `permission denied for table device`.
    private static func denied(_ message: String) -> String {
        let tokens = message.split(separator: " ")
        guard let name = tokens.last, tokens.count > 2 else { return "reading that" }
        return tokens.contains("function") ? "the function \(name)()" : "reading \(name)"
    }
}
