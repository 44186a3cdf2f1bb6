import Model
import Store
import Testing

extension DeviceRegistryContract {
    @PromiseList static var analystAudiences: [Promise] {
        Promise.asked("plan, samples and freeze select the same devices for a SELECT over the analysts' views") {
            store in
            for (index, row) in AnalystQueries.allowed.enumerated() {
                let campaign = AnalystQueries.campaign(row.sql)
                let reach = try await store.reach(of: campaign, budget: nil, now: noon)
                #expect(reach.total == row.expected.count, "\(row.sql)")
                let samples = try await store.sampleDevices(of: campaign, now: noon, fields: [.country], limit: 9)
                #expect(samples.isEmpty == row.expected.isEmpty, "\(row.sql)")
                var definition = try definition("analyst")
                definition.campaign = campaign
                let run = try await store.startRun(definition, occurrence: "\(index)")
                #expect(try await store.lease(run).deliveries.map(\.device) == row.expected, "\(row.sql)")
            }
        }
        Promise.asked("any other text is refused with its fault, and changes nothing") { store in
            let before = try await store.deviceCounts()
            for row in AnalystQueries.refused {
                let fault = await AnalystQueries.fault(row.sql, store)
                #expect(fault == row.fault, "\(row.sql)")
            }
            for row in AnalystQueries.refusedInOwnWords {
                let fault = await AnalystQueries.fault(row.sql, store)
                #expect(fault.map { "\($0)".contains(row.names) } == true, "\(row.sql): \(fault.map { "\($0)" } ?? "")")
            }
            #expect(try await store.deviceCounts() == before)
            #expect(try await store.verify(budgets: [:]).isSound)
        }
        Promise.asked("a run whose audience_sql is refused stays without an audience") { store in
            var definition = try definition("analyst")
            definition.campaign = AnalystQueries.campaign("SELECT id FROM device")
            let run = try await store.createRun(definition, occurrence: "x", now: noon, by: "test").run.id
            await #expect(throws: StoreError.self) { try await store.freeze(run, now: noon) { _ in } }
            #expect(try await store.run(run)?.isFrozen == false)
        }
        Promise.asked("the deliveries of test runs are not in the analysts' views") { store in
            let run = try await store.createTestRun(
                try definition("tried"), occurrence: "t", device: 1, now: noon, by: "test")
            let sql = "SELECT device_id FROM delivery_view WHERE run_id = \(run.id)"
            #expect(try await store.reach(of: AnalystQueries.campaign(sql), budget: nil, now: noon).total == 0)
            let known = "SELECT 1 FROM run_view WHERE is_test AND id = \(run.id)"
            #expect(try await store.reach(of: AnalystQueries.campaign(known), budget: nil, now: noon).total == 1)
        }
        Promise.asked("analysts see the values at the freeze, which no later import changes") { store in
            let seeds = AudienceExpression.comparison(.country, .equal, .text("DE"))
            _ = try await store.startRun(try definition("staged") { $0.stages = [Stage(.seeds(seeds)), Stage(.rest)] })
            let changed = try record(1) {
                $0.locale = "fr"
                $0.country = "FR"
                $0.appVersion = "9.9"
            }
            _ = try await store.importDevices([changed], now: noon)
            let rows = [
                ("stage = 1", 5), ("stage = 2", 1), ("locale = 'de' AND country = 'DE' AND app_version = '4.7'", 1),
                ("locale = 'fr' OR country = 'FR' OR app_version = '9.9'", 0), ("country IS NULL", 1),
                ("time_zone IS NULL AND wave_at IS NULL AND text_locale IS NULL", 6),
            ]
            for (condition, count) in rows {
                let sql = "SELECT device_id FROM delivery_view WHERE campaign = 'staged' AND (\(condition))"
                let found = try await store.reach(of: AnalystQueries.campaign(sql), budget: nil, now: noon).total
                #expect(found == count, "\(condition)")
            }
        }
        Promise.asked("analysts see how many attempts of a delivery had no response") { store in
            let run = try await store.startRun(try definition("doubted"))
            _ = try await store.lease(run, limit: 2)
            _ = try await store.recover(run, now: noon)
            for (condition, count) in [("doubts = 1 AND state = 'pending'", 2), ("doubts = 0", 4)] {
                let sql = "SELECT device_id FROM delivery_view WHERE campaign = 'doubted' AND \(condition)"
                let found = try await store.reach(of: AnalystQueries.campaign(sql), budget: nil, now: noon).total
                #expect(found == count, "\(condition)")
            }
        }
        Promise.asked("an audience_sql sees only the rows of its campaign's app, with all its topics") { store in
            let run = try await AnalystQueries.addAnotherApp(store)
            for sql in AnalystQueries.ofAnotherApp(run: run) {
                let own = AnalystQueries.campaign(sql)
                #expect(try await store.reach(of: own, budget: nil, now: noon).total == 0, "\(sql)")
                var theirs = own
                theirs.topic = "other"
                #expect(try await store.reach(of: theirs, budget: nil, now: noon).total == 1, "\(sql)")
            }
            let voip = "SELECT 2 FROM device_view WHERE topic = '\(wendercast).voip'"
            #expect(try await store.reach(of: AnalystQueries.campaign(voip), budget: nil, now: noon).total == 1)
        }
        Promise.asked("an audience_sql does not evaluate values of another app") { store in
            _ = try await AnalystQueries.addAnotherApp(store)
            for column in ["user_id", "topic"] {
                let sql = """
                    SELECT 1 FROM device_view WHERE \(column) IN ('secret', 'other')
                        AND CASE WHEN CAST(\(column) AS integer) >= 0 THEN true ELSE false END
                    """
                #expect(try await store.reach(of: AnalystQueries.campaign(sql), budget: nil, now: noon).total == 0)
            }
        }
    }
}

extension Promise {
    /// A promise of a store that analysts may query, with the data of ``AnalystQueries``.
    fileprivate static func asked(
        _ name: String, _ body: @escaping @Sendable (any AllRoles) async throws -> Void
    ) -> Promise {
        Promise(
            name,
            opening: { stores in
                let store = try await stores.open()
                try await stores.admitAnalysts()
                try await AnalystQueries.populate(store)
                try await body(store)
            })
    }
}

private enum AnalystQueries {
    static func campaign(_ sql: String) -> Campaign {
        var campaign = Campaign(name: "analyst", topic: wendercast, pushType: .alert, template: "t")
        campaign.audienceSQL = sql
        return campaign
    }

    static func populate(_ store: any AllRoles) async throws {
        let records = try (1...6).map { number in
            try record(number) {
                $0.locale = number <= 2 ? "de" : "pt-BR"
                $0.country = number == 6 ? nil : "DE"
                $0.tags = number == 3 ? ["beta"] : nil
                $0.attributes = ["plan": number % 2 == 0 ? "pro" : "free"]
                $0.lastSeenAt = noon - .seconds(Int64(number) * 86_400)
                $0.registeredAt = number == 5 ? noon - .seconds(1) : nil
                $0.appVersion = "4.\(number + 6)"
                $0.model = number == 4 ? "e\u{301} 'quoted' -- $1 ; :now" : nil
                $0.alertsAllowed = number == 2 ? true : nil
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

    /// Adds device 8 and a run of another app, and device 9 of this app's VoIP topic.
    static func addAnotherApp(_ store: any AllRoles) async throws -> Int64 {
        let theirs = try record(8, topic: "other") {
            $0.userID = "secret"
            $0.tags = ["theirs"]
        }
        _ = try await store.importDevices([theirs, try record(9, topic: "\(wendercast).voip")], now: noon)
        let segment = try await store.importSegment("theirs", mode: .replace)
        try await segment.append([.installation("install-8")])
        _ = try await segment.commit(now: noon)
        return try await store.startRun(try definition("theirs") { $0.topic = "other" })
    }

    /// Returns queries that each select a device of either app if a view shows the rows of the other app.
    static func ofAnotherApp(run: Int64) -> [String] {
        let views = [
            "device_view WHERE user_id = 'secret'", "device_view WHERE topic = 'other'",
            "device_view WHERE id IN (7, 8)",
            "tag_view WHERE tag = 'theirs'", "segment_view WHERE segment = 'theirs'",
            "delivery_view WHERE campaign = 'theirs'", "delivery_view WHERE run_id = \(run)",
            "run_view WHERE campaign = 'theirs'", "run_view WHERE id = \(run)",
        ]
        // Device 1 belongs to this app and device 7 to the other, so one of them is in the campaign's app.
        return views.map { view in
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM \(view)) UNION SELECT 7 WHERE EXISTS (SELECT 1 FROM \(view))"
        }
    }

    /// Returns the fault of the text that the store throws.
    static func fault(_ sql: String, _ store: any AllRoles) async -> AudienceSQLFault? {
        do {
            _ = try await store.reach(of: campaign(sql), budget: nil, now: noon)
            Issue.record("was not refused: \(sql)")
        } catch StoreError.audienceSQL(let fault) {
            return fault
        } catch {
            Issue.record("\(sql): \(error)")
        }
        return nil
    }

    static let allowed: [(sql: String, expected: [Int64])] = [
        ("SELECT id FROM device_view", [1, 2, 3, 4, 5, 6]),
        ("SELECT id FROM device_view WHERE locale = 'de' ORDER BY id DESC", [1, 2]),
        (
            "select ID from Device_View where TOPIC = 'com.example.wendercast' and environment = 'production'",
            [1, 2, 3, 4, 5, 6]
        ),
        ("SELECT \"device_id\" FROM tag_view WHERE tag = 'beta'", [3]),
        ("SELECT device_id FROM segment_view WHERE segment = 'fans' UNION SELECT 3", [1, 3, 4]),
        ("SELECT id FROM device_view WHERE attributes ->> 'plan' = 'pro'", [2, 4, 6]),
        ("SELECT id FROM device_view WHERE last_seen_at >= :now - 3 * 86400000", [1, 2, 3]),
        ("SELECT id FROM device_view WHERE registered_at = :now - 1000 OR :now IS NULL", [5]),
        ("SELECT id FROM device_view WHERE country IS NULL", [6]),
        ("SELECT id FROM device_view WHERE NOT country = 'DE'", []),
        ("SELECT id FROM device_view WHERE alerts_allowed", [2]),
        ("SELECT id FROM device_view WHERE alerts_allowed IS NOT true AND id < 3", [1]),
        ("SELECT id FROM device_view WHERE model = 'e\u{301} ''quoted'' -- $1 ; :now'", [4]),
        ("SELECT id FROM device_view WHERE badge = 0 AND status = 'active' AND status_reason IS NULL AND id = 1", [1]),
        ("SELECT device_id FROM delivery_view WHERE campaign = 'before' AND state = 'accepted'", [1, 2]),
        (
            """
            SELECT device_id FROM delivery_view
            WHERE state = 'pending' AND attempts = 0 AND variant IS NULL AND reason IS NULL AND occurrence = 'once'
            """, [3, 4, 5, 6]
        ),
        (
            """
            SELECT device_id FROM delivery_view
            WHERE status = 200 AND attempts = 1 AND changed_at = :now AND environment = 'production'
            """, [1, 2]
        ),
        ("SELECT device_id FROM delivery_view WHERE text_locale = 'en' AND stage IS NULL", [1, 2]),
        (
            """
            -- Everybody who did not get the last one: für alle.
            WITH got AS (SELECT device_id FROM delivery_view WHERE state = 'accepted')
            SELECT id FROM device_view WHERE id NOT IN (SELECT device_id FROM got) /* the end */ ; -- and out
            """, [3, 4, 5, 6]
        ),
        ("WITH device AS (SELECT 2 AS id, 1 AS topic_id) SELECT id FROM device_view JOIN device USING (id)", [2]),
        ("VALUES (5), (5), (6), (99), (-1)", [5, 6]),
        ("SELECT id FROM device_view WHERE (SELECT count(*) FROM device_view) = 6 AND id = 1", [1]),
        ("SELECT min(id) FROM device_view GROUP BY locale", [1, 3]),
        ("SELECT id FROM device_view WHERE app_version_key > (SELECT 'a4b10')", [5, 6]),
        ("SELECT id FROM device_view WHERE id = 7", []),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT i FROM n", [1, 2, 3, 4]),
        ("WITH a(x) AS (SELECT 1), b(y) AS (SELECT 2) SELECT x FROM a UNION SELECT y FROM b", [1, 2]),
        ("SELECT row_number() OVER (ORDER BY id) FROM device_view LIMIT 2", [1, 2]),
        (
            "SELECT device_view.id FROM run_view, device_view WHERE run_view.id = device_view.id AND campaign = 'before'",
            [1]
        ),
        ("SELECT CAST(d.id AS integer) FROM device_view AS d WHERE upper(d.locale) LIKE 'PT%' AND id > 4", [5, 6]),
    ]

    static let refused: [(sql: String, fault: AudienceSQLFault)] = [
        ("", .invalid("it is empty")), (" -- nothing\n ;", .invalid("it is empty")),
        ("DELETE FROM device", .refused("DELETE")), ("UPDATE device SET status = 2", .refused("UPDATE")),
        ("INSERT INTO tag VALUES (1, 'x') RETURNING device_id", .refused("INSERT")),
        ("DROP TABLE device", .refused("DROP")), ("BEGIN", .refused("BEGIN")),
        ("/* x */ EXPLAIN SELECT id FROM device_view", .refused("EXPLAIN")),
        ("SELEC id FROM device_view", .refused("SELEC")),
        ("SELECT id FROM device_view; SELECT 1", .severalStatements),
        ("SELECT id FROM device_view; DROP TABLE device", .severalStatements),
        ("SELECT id, locale FROM device_view", .columns(2)),
        ("SELECT locale FROM device_view ORDER BY id", .notAnID(row: 1, kind: "a text")),
        ("SELECT id * 0.5 FROM device_view ORDER BY id", .notAnID(row: 1, kind: "a fraction")),
        ("SELECT 1 UNION ALL SELECT NULL", .notAnID(row: 2, kind: "NULL")),
        ("SELECT id FROM device_view WHERE topic = :topic", .unknownParameter(":topic")),
        ("SELECT id FROM device_view ORDER BY random() LIMIT 2", .refused("the function random()")),
        ("SELECT load_extension('x')", .refused("the function load_extension()")),
        ("SELECT id AS größe FROM device_view", .refused("U+00F6 outside of quotes")),
        ("SELECT 'x'\u{301}; DROP TABLE x", .refused("U+0301 outside of quotes")),
        ("SELECT 'a\0b'", .refused("U+0000")), ("SELECT 'x", .invalid("a quote is not closed")),
        ("SELECT 1 /* x", .invalid("a comment is not closed")),
        ("SELECT 1 " + String(repeating: " ", count: 16_384), .invalid("it is longer than 16384 bytes")),
    ]

    /// Texts that each database refuses in its own message, and the name that the message must contain.
    static let refusedInOwnWords: [(sql: String, names: String)] = [
        ("SELECT id FROM device", "reading device"), ("SELECT 1 FROM device", "reading device"),
        ("SELECT id FROM device_view WHERE id IN (SELECT id FROM device WHERE token IS NOT NULL)", "reading device"),
        ("WITH device_view AS (SELECT length(token) AS id FROM device) SELECT id FROM device_view", "reading device"),
        ("SELECT length(definition) FROM run", "reading run"), ("SELECT length(value) FROM meta", "reading meta"),
        ("SELECT token FROM device_view", "token"), ("SELECT id FROM devices", "devices"),
        ("WITH x AS (SELECT 1) DELETE FROM device", "device"),
        ("SELECT id FROM device_view WHERE", "it may read device_view"),
        ("SELECT pragma_table_info('device')", "pragma_table_info"),
    ]
}
