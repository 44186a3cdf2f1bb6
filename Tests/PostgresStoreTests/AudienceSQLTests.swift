import Model
@testable import PostgresStore
import Store
import StoreContract
import TestSupport
import Testing

/// An analyst's own statement, on a database whose administrator has set up the role for it.
@Suite(.timeLimit(.minutes(5)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct AudienceSQLTests {
    private static let allowed: [(sql: String, expected: Int)] = [
        ("SELECT id FROM device_view", 6), ("SELECT id FROM device_view WHERE locale = 'de' ORDER BY id DESC;", 2),
        ("select ID from Device_View where \"topic\" = 'com.example.wendercast' /* all */ -- of it", 6),
        ("SELECT device_id FROM tag_view WHERE tag = 'beta'", 1),
        ("SELECT id FROM device_view WHERE attributes::json ->> 'plan' = 'pro'", 3),
        ("SELECT id FROM device_view WHERE last_seen_at >= :now - 3 * 86400000 AND :now > 0", 3),
        ("VALUES (5), (5), (6), (99), (-1)", 2), ("SELECT min(id) FROM device_view GROUP BY locale", 2),
        ("WITH n AS (SELECT max(id) AS i FROM device_view) SELECT i::smallint FROM n", 1),
        ("SELECT row_number() OVER (ORDER BY id) FROM device_view LIMIT 2", 2),
        ("SELECT id FROM device_view WHERE locale = ':no; such -- thing' OR id IN (1, 2)", 2),
    ]

    @Test func `one SELECT over the views is an audience, for plan and freeze alike`() async throws {
        try await withStore { store in
            for (index, row) in Self.allowed.enumerated() {
                let reach = try await store.reach(of: campaign(row.sql), budget: nil, now: noon)
                #expect(reach.total == row.expected, "\(row.sql)")
                var definition = try definition("analyst")
                definition.campaign = campaign(row.sql)
                let run = try await store.startRun(definition, occurrence: "\(index)")
                #expect(try await store.run(run)?.counts.audience == row.expected, "\(row.sql)")
            }
        }
    }

    private static let refused: [(sql: String, names: String)] = [
        ("SELECT id FROM device", "reading table device"), ("SELECT id FROM public.device", "reading table device"),
        (
            "SELECT id FROM device_view WHERE id IN (SELECT id FROM device WHERE token IS NOT NULL)",
            "reading table device"
        ),
        (
            "WITH device_view AS (SELECT length(token) AS id FROM device) SELECT id FROM device_view",
            "reading table device"
        ),
        ("SELECT token FROM device_view", "token"), ("SELECT run_id FROM run_sender", "reading table run_sender"),
        ("SELECT usesysid::integer FROM pg_shadow", "pg_shadow"),
        ("SELECT length(set_config('role', 'none', false))", "set_config()"),
        ("SELECT 1 FROM (SELECT pg_catalog . \"set_config\" /* x */ ('role', 'none', true)) AS x", "set_config()"),
        ("SELECT length(query_to_xml('SELECT token FROM device', true, true, '')::text)", "query_to_xml()"),
        ("SELECT pg_sleep(10)", "pg_sleep()"), ("SELECT length(pg_read_file('/etc/passwd'))", "pg_read_file()"),
        ("SELECT lo_import('/etc/passwd')", "lo_import()"), ("SELECT nextval('device_id_seq')", "nextval()"),
        ("SELECT 1 OPERATOR(pg_catalog.+) 1", "OPERATOR()"), ("SELECT random()::integer", "random()"),
        ("SELECT length(E'\\'') ", "before a quote"), ("SELECT length(U&'x')", "before a quote"),
        ("SELECT $$x$$", "dollar"), ("SELECT id FROM device_view WHERE id = $1", "dollar"),
        ("SELECT 1 /* /* */ */", "a comment in a comment"), ("SELECT 'x", "no end"),
        ("DELETE FROM device", "DELETE"), ("RESET ROLE", "RESET"), ("SET ROLE NONE", "SET"), ("DO 'x'", "DO"),
        ("WITH x AS (DELETE FROM device RETURNING id) SELECT id FROM x", "device"),
        ("SELECT id FROM device_view; RESET ROLE", "more than one statement"),
        ("SELECT id, locale FROM device_view", "2 columns"), ("SELECT locale FROM device_view", "row 1 is a text"),
        ("SELECT id * 0.5 FROM device_view", "row 1 is a fraction"), ("SELECT NULL::bigint", "row 1 is NULL"),
        ("SELECT id FROM devices", "devices"), ("SELECT id FROM device_view WHERE topic = :topic", ":topic"),
        ("SELECT id INTO stolen FROM device_view", "SELECT INTO"), ("", "empty"), (" -- nothing\n ;", "empty"),
    ]

    @Test func `anything else is refused by name, and changes nothing`() async throws {
        try await withStore { store in
            let before = try await store.deviceCounts()
            for row in Self.refused {
                let error = await refusal { _ = try await store.reach(of: campaign(row.sql), budget: nil, now: noon) }
                #expect(error?.contains(row.names) == true, "\(row.sql): \(error ?? "taken")")
            }
            #expect(try await store.deviceCounts() == before)
            // The connection is its own user's again.
            #expect(try await store.reach(of: campaign("SELECT 1"), budget: nil, now: noon).total == 1)
            _ = try await store.importDevices([try record(50)], now: noon)
        }
    }

    @Test func `one that takes too long is stopped`() async throws {
        try await withStore { store in
            let sql =
                "SELECT count(*) FROM device_view a, device_view b, device_view c, device_view d, device_view e, "
                + "device_view f, device_view g, device_view h, device_view i, device_view j, device_view k"
            await #expect(throws: StoreError.audienceSQL(.tooSlow(limit: .milliseconds(50)))) {
                try await store.readForLong { db in
                    _ = try AnalystAudience(db, timeLimit: .milliseconds(50)).devices(sql, now: noon)
                }
            }
        }
    }

    @Test func `without the role it is said what an administrator runs once, and with that it works`() async throws {
        try await withStore(isSetUp: false) { store in
            let sql = campaign("SELECT id FROM device_view")
            let error = await refusal { _ = try await store.reach(of: sql, budget: nil, now: noon) }
            let start = try #require(error?.firstRange(of: "CREATE ROLE"))
            let text = try #require(error)[start.lowerBound...]
            // The other suites share the cluster, where somebody may have made it.
            let steps = text.split(separator: ";").dropFirst().joined(separator: ";")
            try await administer(String(steps), store)
            #expect(try await store.reach(of: sql, budget: nil, now: noon).total == 6)
        }
    }

    private func administer(_ sql: String, _ store: PostgresDatabase) async throws {
        let database = try await store.read { db in try db.first("SELECT current_database()::text") { try $0.text(0) } }
        let cluster = try await PostgresCluster.shared
        try await OwnThread.run { _ = try cluster.sql(sql, database: database ?? "") }
    }

    private func refusal(_ body: () async throws -> Void) async -> String? {
        do {
            try await body()
            return nil
        } catch StoreError.audienceSQL(let fault) {
            return "\(fault)"
        } catch {
            return "not ours: \(error)".replacing("device", with: "…")
        }
    }

    private func campaign(_ sql: String) -> Campaign {
        var campaign = Campaign(name: "analyst", topic: wendercast, pushType: .alert, template: "t")
        campaign.audienceSQL = sql
        return campaign
    }

    /// A store of a user that is nothing else in the cluster.
    private func withStore(
        isSetUp: Bool = true, _ body: (PostgresDatabase) async throws -> Void
    ) async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        let user = "user_\(database)"
        try await OwnThread.run {
            _ = try cluster.sql(
                """
                DO $$ BEGIN CREATE ROLE fanfare_analyst NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
                CREATE ROLE \(user) LOGIN; ALTER DATABASE \(database) OWNER TO \(user); ALTER SCHEMA public OWNER TO \(user)
                """, database: database)
        }
        let store = try await PostgresDatabase.open(url: cluster.url(database, user: user), time: .caller)
        defer { try? store.close() }
        if isSetUp {
            try await OwnThread.run {
                _ = try cluster.sql(
                    """
                    GRANT fanfare_analyst TO \(user); GRANT USAGE ON SCHEMA public TO fanfare_analyst;
                    GRANT SELECT ON \(AnalystViewNames.all.joined(separator: ", ")) TO fanfare_analyst
                    """, database: database)
            }
        }
        let records = try (1...6).map { number in
            try record(number) { record in
                record.locale = number < 3 ? "de" : "en"
                record.tags = number == 3 ? ["beta"] : nil
                record.lastSeenAt = noon - .seconds(Int64(number) * 86_400)
                record.attributes = ["plan": number % 2 == 0 ? "pro" : "free"]
            }
        }
        _ = try await store.importDevices(records, now: noon)
        try await body(store)
    }
}
