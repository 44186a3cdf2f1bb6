import Model
import Store
import StoreContract
import TestSupport
import Testing

@testable import PostgresStore

/// An analyst's own statement, on a database whose administrator has set up the role and the function for it.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct AudienceSQLTests {
    /// What the text is refused for before the server sees it.
    private static let refused: [(sql: String, names: String)] = [
        ("SELECT ('select set_config(''role'', ''none'', false)'::text).ts_stat", "after a bracket or quote"),
        ("SELECT q.ts_stat FROM lower('select 1') AS q", "the name ts_stat"),
        ("SELECT q.\"set_config\" FROM lower('x') AS q", "the name set_config"),
        ("SELECT q.pg_sleep FROM device_view AS q", "the name pg_sleep"),
        ("SELECT q.lo_unlink FROM device_view AS q", "the name lo_unlink"),
        ("SELECT (ARRAY['x'])[1].ts_stat", "ARRAY"), ("SELECT :now.x", "after a bracket or quote"),
        ("SELECT length(set_config('role', 'none', false))", "set_config()"),
        ("SELECT 1 FROM (SELECT pg_catalog . \"set_config\" /* x */ ('role', 'none', true)) AS x", "pg_catalog"),
        ("SELECT length(query_to_xml('SELECT token FROM device', true, true, '')::text)", "query_to_xml()"),
        ("SELECT length(database_to_xml(true, true, '')::text)", "database_to_xml()"),
        ("SELECT pg_sleep(10)", "pg_sleep"), ("SELECT length(pg_read_file('/etc/passwd'))", "pg_read_file"),
        ("SELECT pg_advisory_lock(5)", "pg_advisory_lock"), ("SELECT pg_notify('a', 'b')", "pg_notify"),
        ("SELECT lo_import('/etc/passwd')", "lo_import()"), ("SELECT lo_creat(-1)", "lo_creat()"),
        ("SELECT nextval('device_id_seq')", "nextval()"), ("SELECT setval('device_id_seq', 1)", "setval()"),
        ("SELECT id FROM dblink('x', 'SELECT 1') AS t(id)", "dblink()"),
        ("SELECT 1, dblink('x') AS (id)", "dblink()"),
        ("SELECT 1 OPERATOR(pg_catalog.+) 1", "operator()"), ("SELECT random()::integer", "random()"),
        ("SELECT now()::text::integer", "now()"),
        ("SELECT exp(9)", "exp()"), ("SELECT 9 ^ 9", "the operator ^"), ("SELECT |/ 9", "the operator |/"),
        ("SELECT ||/ 9", "the operator ||"), ("SELECT length('a' || 'b')", "the operator ||"),
        ("SELECT length(concat('a', 'b'))", "concat()"), ("SELECT 1 WHERE 1 = ANY (ARRAY(SELECT 1))", "ARRAY"),
        ("SELECT CAST('x' AS char(10485760))", "a length in char()"), ("SELECT ROW(1, 2)::text", "ROW"),
        ("SELECT values FROM device_view, json_to_recordset('[]') AS (values bigint)", "json_to_recordset()"),
        ("SELECT repeat('x', 9)", "repeat()"), ("SELECT lpad('x', 9)", "lpad()"),
        ("SELECT power(9, 9)", "power()"), ("SELECT sqrt(9)", "sqrt()"), ("SELECT replace('a', 'b', 'c')", "replace()"),
        ("SELECT $$x$$", "dollar"), ("SELECT id FROM device_view WHERE id = $1", "dollar"),
        ("SELECT 1 FROM pg_database", "pg_database"), ("SELECT 1 FROM information_schema.tables", "information_schema"),
        ("SELECT 'device'::regclass::integer", "regclass"), ("SELECT 'device'::\"regclass\"::integer", "regclass"),
        ("SELECT length(current_user)", "current_user"), ("SELECT length(session_user)", "session_user"),
        ("SELECT length(user)", "the name user"), ("SELECT 1 WHERE current_date > '2026-01-01'", "current_date"),
        ("RESET ROLE", "RESET"), ("SET ROLE NONE", "SET"), ("DO 'x'", "DO"), ("COPY device TO STDOUT", "COPY"),
        ("LOCK device", "LOCK"), ("CREATE TEMP TABLE x (id int)", "CREATE"), ("TABLE device_view", "TABLE"),
        ("SELECT id FROM device_view; RESET ROLE", "more than one statement"),
    ]
    /// What the server refuses, in words that quote nothing of the rows.
    private static let refusedThere: [(sql: String, names: String)] = [
        ("SELECT id INTO stolen FROM device_view", "something other than a SELECT"),
        ("SELECT id FROM device_view FOR UPDATE", "reading device_view"),
        ("WITH x AS (DELETE FROM device RETURNING id) SELECT id FROM x", "non-volatile"),
        ("SELECT id FROM public.device", "reading device"), ("SELECT run_id FROM run_sender", "reading run_sender"),
        ("SELECT run_id FROM delivery_1", "reading delivery_1"),
        ("SELECT q.to_regclass FROM lower('x') AS q", "the function to_regclass as a column"),
        ("SELECT 1 FROM device_view AS d, LATERAL lower(d.locale) AS q WHERE q.row_security_active", "as a column"),
        ("SELECT q.\"text\" FROM lower('x') AS q", "the function text as a column"),
        ("SELECT E'x'", "\"e\" does not exist"), ("SELECT U&'x'", "column \"u\" does not exist"),
        ("SELECT CAST(locale AS bigint) FROM device_view", "SQLSTATE 22P02"),
        ("SELECT id / (id - id) FROM device_view", "SQLSTATE 22012"),
        ("SELECT 99999999999999999999", "SQLSTATE 22003"),
        ("SELECT to_timestamp(1)", "row 1 is a text"), ("SELECT true", "row 1 is of another type"),
        ("SELECT attributes FROM device_view", "row 1 is of another type"), ("SELECT FROM device_view", "0 columns"),
    ]

    @Test func `what leaves the views, waits or reveals is refused by name`() async throws {
        try await withStore { store, _ in
            for row in Self.refused + Self.refusedThere {
                let words = await fault(row.sql, store).map { "\($0)" } ?? "taken"
                #expect(words.contains(row.names) && !words.contains("hidden"), "\(row.sql): \(words)")
            }
            #expect(try await store.reach(of: campaign("SELECT 1"), budget: nil, now: noon).total == 1)
            _ = try await store.importDevices([try record(50)], now: noon)
        }
    }

    /// Given to the function as they are, past the reading of the text: what the role and its function hold by themselves.
    private static let held: [(sql: String, names: String)] = [
        ("SELECT length(set_config('role', 'none', false))", "within security-definer function"),
        ("SELECT ('select length(set_config(''role'', ''none'', false))'::text).ts_stat", "within security-definer"),
        ("SELECT length(set_config('session_authorization', 'postgres', false))", "within security-definer function"),
        (
            "SELECT ndoc FROM ts_stat('SELECT to_tsvector(token::text) FROM device')",
            "permission denied for table device"
        ),
        ("SELECT ('SELECT to_tsvector(token::text) FROM device'::text).ts_stat", "permission denied for table device"),
        ("SELECT length(query_to_xml('SELECT * FROM device', true, true, '')::text)", "permission denied for table"),
        ("SELECT length(table_to_xml('provider_token', true, true, '')::text)", "permission denied for table"),
        ("SELECT length(pg_read_file('/etc/passwd'))", "permission denied for function"),
        ("SELECT lo_import('/etc/passwd')::bigint", "permission denied for function"),
        ("SELECT nextval('device_id_seq')", "permission denied for sequence"),
        ("SELECT setval('device_id_seq', 1)", "permission denied for sequence"),
        ("SELECT usesysid::int FROM pg_shadow", "permission denied for view"),
        ("SELECT pg_sleep(30)::text::bigint", "statement timeout"),
        ("WITH RECURSIVE n(i) AS (SELECT 1::bigint UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n", "timeout"),
        ("WITH x AS (DELETE FROM device RETURNING id) SELECT id FROM x", "not allowed in a non-volatile function"),
        ("SELECT 1; SELECT 2", "multi-query"), ("SET ROLE NONE", "cannot open SET"),
        ("RESET ROLE", "cannot open RESET"),
        ("SET SESSION AUTHORIZATION DEFAULT", "cannot open"), ("DO 'BEGIN END'", "cannot open DO"),
        ("COPY device TO STDOUT", "cannot open COPY"), ("LOCK device_view", "cannot open LOCK"),
        ("SELECT id INTO x FROM device_view", "cannot open SELECT INTO"), ("COMMIT", "cannot open COMMIT"),
        ("SHOW ALL", "not allowed in a non-volatile function"), ("EXPLAIN SELECT 1", "not allowed in a non-volatile"),
        ("CREATE TEMP TABLE x (id int)", "cannot open CREATE TABLE"), ("CALL x()", "does not exist"),
        ("SELECT id FROM device_view FOR UPDATE", "permission denied for view"),
    ]

    @Test func `the role and its function hold without the reading of the text`() async throws {
        try await withStore { store, database in
            let cluster = try await PostgresCluster.shared
            try await withPool(cluster.url(database, user: "owner_\(database)")) { pool in
                for row in Self.held {
                    let error = await postgresError {
                        // A transaction that may write: only the role and the function stand between.
                        try await pool.write { db in
                            // Short where it is what holds; nothing else fails for want of time.
                            let timeout = row.names.contains("timeout") ? 1_000 : 60_000
                            try db.execute(.once("SET LOCAL statement_timeout = \(timeout)"))
                            _ = try db.rows("SELECT * FROM fanfare_audience($1, 1, 10)", row.sql)
                        }
                    }
                    let words = error.map { "\($0)" } ?? "taken"
                    #expect(words.contains(row.names), "\(row.sql): \(words)")
                }
                let error = await postgresError {
                    try await pool.read { db in
                        _ = try db.rows(
                            """
                            SELECT * FROM fanfare_audience(
                                'SELECT length(set_config(''transaction_read_only'', ''off'', true))', 1, 1
                            )
                            """)
                    }
                }
                #expect(error.map { "\($0)".contains("must be set before any query") } == true)
                let me = try await pool.read { db in try db.first("SELECT current_user::text") { try $0.text(0) } }
                #expect(me == "owner_\(database)")
            }
            #expect(try await store.deviceCounts().reduce(0) { $0 + $1.count } == 6)
        }
    }

    @Test func `one that takes too long is stopped, and one that selects too many`() async throws {
        try await withStore { store, _ in
            let endless = campaign(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")
            await #expect(throws: StoreError.audienceSQL(.tooSlow(limit: .milliseconds(50)))) {
                _ = try await store.analystCondition(
                    endless, now: noon, bounds: AnalystAudience(timeLimit: .milliseconds(50)))
            }
            let bounds = AnalystAudience(devicesMax: 5)
            let all = campaign("SELECT id FROM device_view")
            await #expect(throws: StoreError.audienceSQL(.tooMany(limit: 5))) {
                _ = try await store.analystCondition(all, now: noon, bounds: bounds)
            }
            let some = try await store.analystCondition(
                campaign("SELECT id FROM device_view LIMIT 5"), now: noon, bounds: bounds)
            #expect((some?.values.first as? [Int64])?.count == 5)
        }
    }

    @Test func `without the function it is said what an administrator runs, and with it it works`() async throws {
        try await withStore(isSetUp: false) { store, database in
            let all = campaign("SELECT id FROM device_view")
            let fault = await fault("SELECT id FROM device_view", store)
            #expect(fault == .notSetUp("the database has no function fanfare_audience"))
            #expect(fault.map { "\($0)".contains("fanfare install --postgres") && !"\($0)".contains("\n") } == true)
            #expect(try await store.audienceSQLObstacle() == fault)
            let cluster = try await PostgresCluster.shared
            let sql = AdministratorSQL(owner: "owner_\(database)", reader: "reader_\(database)")
            try await cluster.administer(sql, database)
            #expect(try await store.audienceSQLObstacle() == nil)
            #expect(try await store.reach(of: all, budget: nil, now: noon).total == 6)
            let revoked = "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM owner_\(database)"
            for (change, words) in [
                ("GRANT SELECT ON device TO PUBLIC", "may read more than the analysts' views"),
                ("REVOKE SELECT ON device FROM PUBLIC; REVOKE SELECT ON tag_view FROM fanfare_analyst", "may not read"),
                ("GRANT SELECT ON tag_view TO fanfare_analyst; \(revoked)", "may not call"),
                (
                    "ALTER FUNCTION fanfare_audience OWNER TO owner_\(database)",
                    "may read more than the analysts' views"
                ),
            ] {
                try await OwnThread.run { _ = try cluster.sql(change, database: database) }
                let obstacle = try await store.audienceSQLObstacle()
                #expect(obstacle.map { "\($0)".contains(words) } == true, "\(change)")
            }
            try await cluster.administer(sql, database)
            #expect(try await store.reach(of: all, budget: nil, now: noon).total == 6)
        }
    }

    private func fault(_ sql: String, _ store: PostgresDatabase) async -> AudienceSQLFault? {
        do {
            _ = try await store.reach(of: campaign(sql), budget: nil, now: noon)
            return nil
        } catch StoreError.audienceSQL(let fault) {
            return fault
        } catch {
            Issue.record("\(sql): \(error)")
            return nil
        }
    }

    private func campaign(_ sql: String) -> Campaign {
        var campaign = Campaign(name: "analyst", topic: wendercast, pushType: .alert, template: "t")
        campaign.audienceSQL = sql
        return campaign
    }

    /// A store of a user that is nothing else in the cluster.
    private func withStore(
        isSetUp: Bool = true, _ body: (PostgresDatabase, _ database: String) async throws -> Void
    ) async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        let owner = "owner_\(database)"
        let sql = AdministratorSQL(owner: owner, reader: "reader_\(database)")
        try await cluster.administer(sql, database)
        if !isSetUp {
            try await OwnThread.run { _ = try cluster.sql("DROP FUNCTION fanfare_audience", database: database) }
        }
        let store = try await PostgresDatabase.open(url: cluster.url(database, user: owner), time: .caller)
        defer { try? store.close() }
        if isSetUp { try await cluster.administer(sql, database) }
        let records = try (1...6).map { number in
            try record(number) {
                $0.locale = "hidden"
                $0.attributes = ["hidden": "x"]
            }
        }
        _ = try await store.importDevices(records, now: noon)
        _ = try await store.startRun(try definition("before"))
        try await body(store, database)
    }
}
