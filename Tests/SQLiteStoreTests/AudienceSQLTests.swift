import GRDB
import Model
import Store
import StoreContract
import TestSupport
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

    /// In SQLite's own words; the rest is a promise of every store's.
    static let allowed: [(sql: String, expected: [Int64])] = [
        ("SELECT id FROM device_view WHERE json_extract(attributes, '$.plan') = 'pro'", [2, 4, 6]),
        ("SELECT device_view.id FROM device_view, json_each(attributes) WHERE value = 'free'", [1, 3, 5]),
        ("SELECT id FROM device_view WHERE [locale] IS 'de' AND unixepoch('now') > 0", [1, 2]),
    ]

    @Test func `what SQLite adds is an audience, for plan and freeze alike`() async throws {
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
        ("SELECT id FROM main.device", "device.id"),
        ("SELECT token FROM device_view", "no such column: token"),
        ("SELECT unicode(value) FROM meta", "meta."),
        ("SELECT rootpage FROM sqlite_schema", "sqlite_master"),
        ("SELECT cid FROM pragma_table_info('device')", "table-valued function"),
        ("WITH tag_view AS (SELECT unicode(hex(token)) AS id FROM main.device) SELECT id FROM tag_view", "device."),
        ("SELECT length(definition) FROM run", "run.definition"),
        ("WITH x AS (SELECT 1) DELETE FROM device", "device"),
        ("ATTACH 'x.sqlite' AS x", "ATTACH"),
        ("PRAGMA user_version", "PRAGMA"),
        ("VACUUM INTO 'copy.sqlite'", "VACUUM"),
        ("SELECT * FROM device_view", "columns"),
        ("SELECT id, locale FROM device_view WHERE false", "2 columns"),
        ("SELECT id FROM devices", "no such table: devices"),
        ("SELECT id FROM device_view WHERE topic = ?", "parameter ?"),
        ("SELECT sqlite_version()", "sqlite_version"),
        ("SELECT length(zeroblob(100000000))", "zeroblob"),
        ("SELECT length(printf('%*c', 100000000, 'x'))", "row 1 is NULL"),
        ("SELECT id FROM device_view WHERE", "incomplete input"),
        ("SELECT `;`", "more than one statement"),
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

    /// SQLite's messages quote values, and an expression may be evaluated before the condition of a view.
    @Test(arguments: [
        "SELECT json_extract('{}', (SELECT user_id FROM device_view WHERE user_id = 'user-1'))",
        "SELECT id FROM device_view WHERE json_extract('{}', user_id) IS NULL",
        "SELECT id FROM device_view WHERE json_extract('{}', installation_id) = 1",
    ])
    func `an error in a row quotes no value, and a row of another app brings none`(sql: String) async throws {
        try await withStore { store in
            let theirs = try record(2, topic: "other") { $0.userID = "user-2" }
            _ = try await store.importDevices([theirs], now: noon)
            let each = "SELECT id FROM device_view WHERE json_extract('{}', user_id) = 1"
            #expect(try await store.reach(of: campaign(each), budget: nil, now: noon).total == 0)
            let own = try record(1) { $0.userID = "user-1" }
            _ = try await store.importDevices([own], now: noon)
            do {
                _ = try await store.reach(of: campaign(sql), budget: nil, now: noon)
                Issue.record("there was no error")
            } catch let StoreError.audienceSQL(.invalid(reason)) {
                #expect(reason == "a value in a row has the wrong type for its use (SQL logic error)")
            }
        }
    }

    @Test func `a statement without end is stopped at its time limit`() async throws {
        try await withStore { store in
            try await populate(store)
            let connection = try AnalystConnection(address: store.path, app: wendercast, timeLimit: .milliseconds(50))
            let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
            #expect(throws: StoreError.audienceSQL(.tooSlow(limit: .milliseconds(50)))) {
                try connection.select(endless, now: noon) { _ in }
            }
        }
    }

    @Test func `a statement without end stops with the read that it is for`() async throws {
        try await withStore { store in
            try await populate(store)
            let connection = try AnalystConnection(address: store.path, app: wendercast, timeLimit: .seconds(600)) {
                true
            }
            let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
            #expect(throws: CancellationError.self) { try connection.select(endless, now: noon) { _ in } }
        }
    }

    /// SQLite's own functions would take minutes for one step, which nothing stops.
    @Test(arguments: ["instr(A, B)", "replace(A, B, 'x')", "trim(A, C)", "ltrim(A, C)", "rtrim(A, C)"])
    func `a function of two long texts has a linear cost`(call: String) async throws {
        try await withStore { store in
            try await populate(store)
            let connection = try AnalystConnection(address: store.path, app: wendercast, timeLimit: .seconds(600))
            let fault = LinearCost.fault(of: .init("x"), upTo: 256 << 10) { text in
                let size = text.utf8.count
                let sql = "SELECT length(\(call)) FROM device_view"
                    .replacing("A", with: "replace(printf('%\(size)d', id), ' ', 'a')")
                    .replacing("B", with: "replace(printf('%\(size / 2)d', id + 1), ' ', 'a')")
                    .replacing("C", with: "replace(printf('%\(size)d', id), ' ', 'b') || 'a'")
                try? connection.select(sql, now: noon) { _ in }
            }
            #expect(fault == nil)
        }
    }

    @Test func `a long pattern is refused, and the limit named`() async throws {
        try await withStore { store in
            try await populate(store)
            let connection = try AnalystConnection(address: store.path, app: wendercast, timeLimit: .seconds(600))
            for word in ["LIKE", "GLOB"] {
                let sql = "SELECT id FROM device_view WHERE 'a' \(word) printf('%101d', id)"
                #expect(throws: StoreError.audienceSQL(.patternTooLong(bytesMax: 100))) {
                    try connection.select(sql, now: noon) { _ in }
                }
            }
            let words = "\(StoreError.audienceSQL(.patternTooLong(bytesMax: 100)))"
            #expect(words.contains("100 bytes") && words.contains("instr("), "\(words)")
        }
    }

    @Test func `the functions return what SQLite's own return`() throws {
        let texts = [
            "''", "'a'", "'aba'", "'abab ab'", "'äöä'", "'🇩🇪 x'", "X'6162'", "X''", "X'E4'", "12", "1.5", "NULL",
            "' a '", "'é' || X'CC81'",
        ]
        let (own, plain) = (try DatabaseQueue(), try DatabaseQueue())
        try own.writeWithoutTransaction { try AnalystFunctions.add(to: try #require($0.sqliteConnection)) }
        for first in texts {
            for second in texts {
                for call in [
                    "instr(A, B)", "replace(A, B, 'cc')", "replace(A, 'a', B)", "replace(B, A, NULL)", "trim(A, B)",
                    "ltrim(A, B)", "rtrim(A, B)",
                ] {
                    let value = call.replacing("A", with: first).replacing("B", with: second)
                    let sql = "SELECT typeof(\(value)) || ' ' || quote(\(value))"
                    let results = try [own, plain].map { try $0.read { try String.fetchOne($0, sql: sql) } }
                    #expect(results[0] == results[1], "\(value)")
                }
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
