import GRDB
import Model
import Store
import StoreContract
import Testing

@testable import SQLiteStore

@Suite(.timeLimit(.minutes(10)))
struct AudienceSQLTests {
    private func populate(_ store: SQLiteFileStore) async throws {
        let records = try (1...6).map { number in
            try record(number) {
                $0.locale = number <= 2 ? "de" : "pt-BR"
                $0.country = number == 6 ? nil : "DE"
                $0.tags = number == 3 ? ["beta"] : nil
                $0.attributes = ["plan": number % 2 == 0 ? "pro" : "free"]
                $0.lastSeenAt = noon - .seconds(Int64(number) * 86_400)
                $0.appVersion = "4.\(number + 6)"
            }
        }
        _ = try await store.importDevices(records + [try record(7, topic: "other")], now: noon)
        let fans = try await store.importSegment("fans", mode: .replace)
        try await fans.append([.installation("install-1"), .installation("install-4")])
        _ = try await fans.commit(now: noon)
        let run = try await store.startRun(try definition("before"))
        let lease = try await store.lease(run, limit: 2)
        _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
    }

    private func campaign(_ sql: String) -> Campaign {
        var campaign = Campaign(name: "analyst", topic: wendercast, pushType: .alert, template: "t")
        campaign.audienceSQL = sql
        return campaign
    }

    private func frozen(_ store: SQLiteFileStore, _ sql: String, occurrence: String) async throws -> [Int64] {
        var definition = try definition("analyst")
        definition.campaign = campaign(sql)
        let run = try await store.startRun(definition, occurrence: occurrence)
        return try await store.lease(run).deliveries.map(\.device)
    }

    static let allowed: [(sql: String, expected: [Int64])] = [
        ("SELECT id FROM device_view", [1, 2, 3, 4, 5, 6]),
        ("SELECT id FROM device_view WHERE locale = 'de' ORDER BY id DESC", [1, 2]),
        (
            "select ID from Device_View where TOPIC = 'com.example.wendercast' and environment = 'production'",
            [1, 2, 3, 4, 5, 6]
        ),
        ("SELECT device_id FROM tag_view WHERE tag = 'beta'", [3]),
        ("SELECT device_id FROM segment_view WHERE segment = 'fans' UNION SELECT 3", [1, 3, 4]),
        ("SELECT id FROM device_view WHERE json_extract(attributes, '$.plan') = 'pro'", [2, 4, 6]),
        ("SELECT id FROM device_view WHERE attributes ->> 'plan' = 'pro'", [2, 4, 6]),
        ("SELECT device_view.id FROM device_view, json_each(attributes) WHERE value = 'free'", [1, 3, 5]),
        ("SELECT id FROM device_view WHERE last_seen_at >= :now - 3 * 86400000", [1, 2, 3]),
        ("SELECT device_id FROM delivery_view WHERE campaign = 'before' AND state = 'accepted'", [1, 2]),
        (
            """
            -- Everybody who did not get the last one.
            WITH got AS (SELECT device_id FROM delivery_view WHERE state = 'accepted')
            SELECT id FROM device_view WHERE id NOT IN (SELECT device_id FROM got) /* the end */ ; -- and out
            """, [3, 4, 5, 6]
        ),
        ("WITH device AS (SELECT 2 AS id, 1 AS topic_id) SELECT id FROM device_view JOIN device USING (id)", [2]),
        ("VALUES (5), (5), (6), (99), (-1)", [5, 6]),
        ("SELECT id FROM device_view WHERE (SELECT count(*) FROM device_view) = 7 AND id = 1", [1]),
        ("SELECT min(id) FROM device_view GROUP BY locale", [1, 3]),
        ("SELECT id FROM device_view WHERE app_version_key > (SELECT 'a4b10')", [5, 6]),
        ("SELECT id FROM device_view WHERE id = 7", []),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT i FROM n", [1, 2, 3, 4]),
        ("SELECT row_number() OVER (ORDER BY id) FROM device_view LIMIT 2", [1, 2]),
        (
            "SELECT device_view.id FROM run_view, device_view WHERE run_view.id = device_view.id AND campaign = 'before'",
            [1]
        ),
    ]

    @Test func `one SELECT over the views is an audience, for plan and freeze alike`() async throws {
        try await withStore { store in
            try await populate(store)
            for (index, row) in Self.allowed.enumerated() {
                let reach = try await store.reach(of: campaign(row.sql), budget: nil, now: noon)
                #expect(reach.total == row.expected.count, "\(row.sql)")
                #expect(try await frozen(store, row.sql, occurrence: "\(index)") == row.expected, "\(row.sql)")
                let samples = try await store.sampleDevices(
                    of: campaign(row.sql), now: noon, fields: [.country], limit: 9)
                #expect(samples.isEmpty == row.expected.isEmpty)
            }
        }
    }

    /// What the message must name.
    static let refused: [(sql: String, names: String)] = [
        ("SELECT id FROM device", "device.id"),
        ("SELECT 1 FROM device", "reading device"),
        ("SELECT id FROM main.device", "device.id"),
        ("SELECT id FROM device_view WHERE id IN (SELECT id FROM device WHERE token IS NOT NULL)", "device."),
        ("SELECT token FROM device_view", "no such column: token"),
        ("SELECT unicode(value) FROM meta", "meta."),
        ("SELECT rootpage FROM sqlite_schema", "sqlite_master"),
        ("SELECT cid FROM pragma_table_info('device')", "table-valued function"),
        ("WITH device_view AS (SELECT length(token) AS id FROM device) SELECT id FROM device_view", "device."),
        ("WITH tag_view AS (SELECT unicode(hex(token)) AS id FROM main.device) SELECT id FROM tag_view", "device."),
        ("SELECT length(definition) FROM run", "run.definition"),
        ("DELETE FROM device", "DELETE"),
        ("WITH x AS (SELECT 1) DELETE FROM device", "device"),
        ("UPDATE device SET status = 2", "UPDATE"),
        ("INSERT INTO tag VALUES (1, 'x') RETURNING device_id", "INSERT"),
        ("DROP TABLE device", "DROP"),
        ("CREATE TEMP TABLE x (id)", "CREATE"),
        ("ATTACH 'x.sqlite' AS x", "ATTACH"),
        ("PRAGMA user_version", "PRAGMA"),
        ("EXPLAIN SELECT id FROM device_view", "EXPLAIN"),
        ("BEGIN", "BEGIN"),
        ("VACUUM INTO 'copy.sqlite'", "VACUUM"),
        ("SELECT id FROM device_view; SELECT 1", "more than one statement"),
        ("SELECT id FROM device_view; DROP TABLE device", "more than one statement"),
        ("SELECT id, locale FROM device_view", "2 columns"),
        ("SELECT * FROM device_view", "columns"),
        ("SELECT locale FROM device_view", "row 1 is a text"),
        ("SELECT id * 0.5 FROM device_view", "row 1 is a fraction"),
        ("SELECT 1 UNION ALL SELECT NULL", "row 2 is NULL"),
        ("SELECT id FROM devices", "no such table: devices"),
        ("SELECT id FROM device_view WHERE topic = ?", "parameter ?"),
        ("SELECT id FROM device_view WHERE topic = :topic", ":topic"),
        ("SELECT id FROM device_view ORDER BY random() LIMIT 2", "random()"),
        ("SELECT load_extension('x')", "load_extension"),
        ("SELECT sqlite_version()", "sqlite_version"),
        ("SELECT length(zeroblob(100000000))", "zeroblob"),
        ("SELECT length(printf('%*c', 100000000, 'x'))", "row 1 is NULL"),
        ("SELEC id FROM device_view", "SELEC"),
        ("SELECT id FROM device_view WHERE", "incomplete input"),
        ("", "empty"),
        (" -- nothing\n ;", "empty"),
    ]

    @Test func `anything else is refused by name and changes nothing`() async throws {
        try await withStore { store in
            try await populate(store)
            for row in Self.refused {
                do {
                    _ = try await store.reach(of: campaign(row.sql), budget: nil, now: noon)
                    Issue.record("was not refused: \(row.sql)")
                } catch let error as StoreError {
                    guard case .audienceSQL = error else {
                        Issue.record("\(row.sql): \(error)")
                        continue
                    }
                    #expect("\(error)".contains(row.names), "\(row.sql): \(error)")
                }
            }
            #expect(try await store.deviceCounts().reduce(0) { $0 + $1.count } == 7)
            var definition = try definition("analyst")
            definition.campaign = campaign("SELECT id FROM device")
            let run = try await store.createRun(definition, occurrence: "x", now: noon, by: "test").run.id
            await #expect(throws: StoreError.audienceSQL(.refused("reading device.id"))) {
                try await store.freeze(run, now: noon) { _ in }
            }
            #expect(try await store.run(run)?.isFrozen == false)
        }
    }

    @Test func `a statement without end is stopped at its time limit`() async throws {
        try await withStore { store in
            try await populate(store)
            let connection = try AnalystConnection(address: store.path, timeLimit: .milliseconds(50))
            let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
            #expect(throws: StoreError.audienceSQL(.tooSlow(limit: .milliseconds(50)))) {
                try connection.select(endless, now: noon) { _ in }
            }
        }
    }

    @Test func `the views hold no token and are there for a SQLite shell`() async throws {
        try await withStore { store in
            try await populate(store)
            try await store.pool.read { db in
                for view in AnalystView.all {
                    let row = try #require(try Row.fetchOne(db, sql: "SELECT * FROM \(view.name)"), "\(view.name)")
                    #expect(!row.columnNames.contains { $0.contains("token") })
                }
            }
        }
    }

    @Test func `test runs are no part of what analysts count`() async throws {
        try await withStore { store in
            try await populate(store)
            _ = try await store.createTestRun(
                try definition("before"), occurrence: "test", device: 5, now: noon, by: "ray")
            let sql = "SELECT device_id FROM delivery_view WHERE occurrence = 'test'"
            #expect(try await store.reach(of: campaign(sql), budget: nil, now: noon).total == 0)
        }
    }

    @Test func `analysts find holdout and variant with the seeds of the run`() async throws {
        try await withStore { store in
            try await DeliveryQueueContract.populate(store)
            let run = try await store.startRun(try DeliveryQueueContract.split())
            let differing = try await store.pool.read { db in
                try Int.fetchOne(
                    db,
                    sql: """
                        WITH bucket AS (
                            SELECT device_view.id AS device_id, run_view.id AS run_id,
                                (((holdout_seed * device_view.id + 1103515245) % 2147483647 * device_view.id
                                    + holdout_seed) % 2147483647 * device_view.id + 1013904223) % 2147483647 % 10000
                                    AS holdout,
                                (((variant_seed * device_view.id + 1103515245) % 2147483647 * device_view.id
                                    + variant_seed) % 2147483647 * device_view.id + 1013904223) % 2147483647 % 10000
                                    AS variant
                            FROM device_view, run_view WHERE run_view.id = :run
                        )
                        SELECT count(*) FROM delivery_view JOIN bucket USING (run_id, device_id)
                        WHERE reason IS NOT 'alerts_not_allowed' AND (
                            (reason IS 'holdout') <> (holdout < 1000)
                            OR delivery_view.variant
                                IS NOT iif(holdout < 1000, NULL, iif(bucket.variant < 5000, 'long', 'short'))
                        )
                        """, arguments: ["run": run])
            }
            #expect(differing == 0)
        }
    }
}
