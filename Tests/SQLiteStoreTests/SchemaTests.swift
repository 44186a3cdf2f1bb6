import Foundation
import GRDB
import Model
import Store
import StoreContract
import Testing
@testable import SQLiteStore

/// Stores made by earlier versions are opened by this one: what they were made with never changes.
@Suite(.timeLimit(.minutes(10)))
struct SchemaTests {
    /// A store of an earlier version with runs in all states, as its own code wrote it.
    private static func golden(version: Int = 1, in folder: URL) throws -> String {
        let path = folder.appending(path: "fanfare.sqlite").path
        let dump = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "Fixtures/store-version-\(version).sql")
        let queue = try DatabaseQueue(path: path)
        let text = try String(contentsOf: dump, encoding: .utf8)
        try queue.inDatabase { try $0.execute(sql: text) }
        try queue.close()
        return path
    }

    @Test(arguments: [
        (SchemaVersion1.sql, hash1), (SchemaVersion2.sql, hash2), (SchemaVersion3.sql, hash3),
        (SchemaVersion4.sql, hash4), (SchemaVersion5.sql, hash5),
    ])
    func `the text of a migration is what stores were made with`(sql: String, hash: UInt64) {
        #expect(FNV1a.hash(sql) == hash, "a released migration was edited: write a new one instead")
    }

    private static let hash1: UInt64 = 0xA174_6CB7_1440_C41F
    private static let hash2: UInt64 = 0xFBE8_52BA_0A7E_BE75
    private static let hash3: UInt64 = 0xD322_2FE1_CEF9_DEDB
    private static let hash4: UInt64 = 0x3ED4_6AEF_3C2C_59A3
    private static let hash5: UInt64 = 0xE3E9_195E_0D4F_7993

    @Test(arguments: [1, 2, 3])
    func `an older store comes out with everything it had, and a copy beside it`(version: Int) async throws {
        try await withFolder { folder in
            let path = try Self.golden(version: version, in: folder)
            #expect(throws: StoreError.olderVersion(path: path, found: version, known: Schema.version)) {
                try SQLiteFileStore(path: path, access: .reading)
            }
            let store = try SQLiteFileStore(path: path)
            #expect(try await store.read { try Int.fetchOne($0, sql: "PRAGMA user_version") } == Schema.version)
            let found = try await store.verify(budgets: [:])
            #expect(found.isSound, "\(found.checks.filter { $0.faultCount > 0 })")
            #expect(found["silent_ledger"]?.compared == 3)
            #expect(try await store.runs(limit: 9).map(\.state) == [.missed, .finished, .running, .running])
            #expect(try await store.latestRun(campaign: "done", state: .finished)?.id == 3)
            #expect(try await store.latestRun(campaign: "done")?.id == 4)
            #expect(try await store.latestRun(campaign: "done", includingTests: true)?.id == 5)
            let report = try await store.report(3)
            #expect(report.devicesGone == 1 && report.devicesSuspended == 2 && report.counts.closes)
            #expect(try await store.deviceCounts().reduce(0) { $0 + $1.count } == 12)
            #expect(try await store.segments().map(\.count) == [5, 8])
            #expect(try await store.recover(1, now: noon + .seconds(60)).leases == 1)
            try store.close()
            let backup = try DatabaseQueue(path: path + ".v\(version).backup")
            #expect(try await backup.read { try Int.fetchOne($0, sql: "PRAGMA user_version") } == version)
            #expect(try await backup.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM delivery") } == 37)
            try backup.close()
        }
    }

    /// Run 1 was given up a second after noon, run 3 failed later than it was made, run 4 was refused.
    @Test(arguments: [1, 2])
    func `an older store knows when its runs were last sent, and which were refused`(version: Int) async throws {
        try await withFolder { folder in
            let path = try Self.golden(version: version, in: folder)
            let queue = try DatabaseQueue(path: path)
            try await queue.write { db in
                try db.execute(
                    sql: """
                        UPDATE run SET owner = NULL, heartbeat_at = NULL WHERE id = 1;
                        UPDATE run SET state = 'failed' WHERE id IN (3, 4);
                        """)
            }
            try queue.close()
            let store = try SQLiteFileStore(path: path)
            let runs = try await store.runs(limit: 9).sorted { $0.id < $1.id }
            #expect(runs.map(\.heartbeatAt) == [noon + .seconds(1), noon, nil, nil])
            #expect(runs.map(\.isRefused) == [false, false, false, true])
            try store.close()
        }
    }

    @Test(arguments: [1, 2, 3])
    func `a store that was brought up to date is as one made new`(version: Int) async throws {
        try await withFolder { folder in
            let old = try SQLiteFileStore(path: try Self.golden(version: version, in: folder))
            let new = try SQLiteFileStore(path: folder.appending(path: "new.sqlite").path)
            let objects =
                "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY type, name"
            let expected = try await new.read { try String.fetchAll($0, sql: objects) }
            #expect(try await old.read { try String.fetchAll($0, sql: objects) } == expected)
            try old.close()
            try new.close()
        }
    }

    @Test(arguments: 1..<9)
    func `a token that an earlier version recorded as proven stays so`(version: Int) async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "fanfare.sqlite").path
            let pool = try DatabasePool(path: path)
            try Schema.migrate(pool, path: path, Array(Schema.migrations.prefix(version)))
            try await pool.write { db in
                try db.execute(sql: "INSERT INTO topic (id, name) VALUES (1, '\(wendercast)')")
                for device in EarlierProofs.devices {
                    try db.execute(
                        sql: """
                            INSERT INTO device (id, topic_id, environment, token, token_generation)
                            VALUES (:id, 1, 0, randomblob(32), :generation)
                            """, arguments: ["id": device.id, "generation": device.generation])
                    try db.execute(
                        sql: """
                            INSERT INTO proven_token (device_id, token_generation) SELECT :id, :proven WHERE :proven > 0
                            """, arguments: ["id": device.id, "proven": device.proven])
                }
            }
            try pool.close()
            let store = try SQLiteFileStore(path: path)
            for device in EarlierProofs.devices {
                #expect(try await store.device(device.id)?.isProven == device.isProven, "\(device)")
            }
            #expect(try await store.verify(budgets: [:]).isSound)
            try store.close()
        }
    }

    /// Devices of version 2: nobody kept when they were heard of.
    @Test(arguments: [(1, DeviceStatus.active), (0, .gone), (nil, .gone)] as [(Int?, DeviceStatus)])
    func `a device of an older store counts as registered when it was last seen`(
        seenAfterMs: Int?, expected: DeviceStatus
    ) async throws {
        try await withStore { store in
            let seen = seenAfterMs.map { noon + .milliseconds($0) }
            _ = try await store.importDevices([try record(1) { $0.lastSeenAt = seen }], now: noon + .seconds(60))
            try await store.write { try $0.execute(sql: "DELETE FROM token_heard") }
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            _ = try await store.settleAndMark(
                run: run, lease.settlements(.rejected, status: 410, reason: "Unregistered", effect: .gone(since: noon)),
                now: noon + .seconds(60))
            #expect(try await store.device(1)?.status == expected)
        }
    }

    @Test func `a summary of an earlier version does not say how many may have arrived`() async throws {
        try await withStore { store in
            let run = try await StoreUpkeepContract.finishedRun(in: store)
            try await store.summarizeOutcomes(run: run)
            #expect(try await store.report(run).mayHaveArrived == 0)
            try await store.write { try $0.execute(sql: "DELETE FROM outcome_slice WHERE dimension = 'responses'") }
            #expect(try await store.report(run).mayHaveArrived == nil)
            #expect(try await store.check(run).problems == [])
        }
    }

    /// The views of the schema are frozen, those of `audience_sql` are made of the types: they must select the same.
    @Test func `the views a store has are those that analysts may read`() async throws {
        try await withFolder { folder in
            let store = try SQLiteFileStore(path: try Self.golden(in: folder))
            #expect(AnalystView.all.map(\.name) == AnalystViewNames.all)
            try await store.read { db in
                for view in AnalystView.all {
                    let stored = try Row.fetchAll(db, sql: "SELECT * FROM \(view.name)")
                    #expect(!stored.isEmpty, "\(view.name)")
                    #expect(try Row.fetchAll(db, sql: view.select(from: "")) == stored, "\(view.name)")
                }
            }
            try store.close()
        }
    }

    @Test(arguments: [
        (RunLogQueries.latestInState, "run_campaign_state"), (RunLogQueries.unfinished, "run_campaign_state"),
        (RunLogQueries.latest, "run_campaign"),
        (RunLogQueries.latestWithTests, "run_campaign"),
    ])
    func `previous runs are looked up by index`(query: RunLogQueries, index: String) async throws {
        try await withStore { store in
            let plan = try await store.read { db in
                try Row.fetchAll(
                    db, sql: "EXPLAIN QUERY PLAN SELECT * FROM run \(query.clauses)", arguments: query.arguments
                ).map { $0["detail"] as String }
            }
            // The few that are not over may be sorted behind it.
            #expect(plan[0].hasPrefix("SEARCH run USING INDEX \(index) (campaign=?"), "\(plan)")
            #expect(plan.dropFirst() == (query == .unfinished ? ["USE TEMP B-TREE FOR ORDER BY"] : []), "\(plan)")
        }
    }

    @Test func `what waits for a person is looked up by index`() async throws {
        try await withStore { store in
            let plan = try await store.read { db in
                try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN SELECT * FROM run \(RunClauses<Database>.halted)")
                    .map { $0["detail"] as String }
            }
            #expect(plan == ["SCAN run USING INDEX run_halted"])
        }
    }

    /// However many deliveries, runs and events there are, a page reads its own.
    @Test(arguments: [
        (
            DeliveryPages<Database>.nextReasonSQL(1, .rejected).text,
            "SEARCH delivery USING COVERING INDEX delivery_failed (run_id=? AND state=? AND reason>?)"
        ),
        (
            DeliveryPages<Database>.failedSQL(1, .rejected, hasReason: true).text,
            "SEARCH delivery USING COVERING INDEX delivery_failed (run_id=? AND state=? AND reason=? AND device_id>?)"
        ),
        (RunClauses<Database>.listed, "SEARCH run USING COVERING INDEX run_listing (id<?)"),
        (RunClauses<Database>.listedAfter, "SEARCH run USING COVERING INDEX run_listing (id>?)"),
        (
            "SELECT id FROM event WHERE actor = 'a' AND id < 9 ORDER BY id DESC",
            "SEARCH event USING COVERING INDEX event_actor (actor=? AND rowid<?)"
        ),
        (
            "SELECT id FROM event WHERE kind = 'a' AND id < 9 ORDER BY id DESC",
            "SEARCH event USING COVERING INDEX event_kind (kind=? AND rowid<?)"
        ),
    ])
    func `a page is looked up by index, in order`(sql: String, plan expected: String) async throws {
        try await withStore { store in
            let plan = try await store.read { db in
                let statement = try db.makeStatement(sql: "EXPLAIN QUERY PLAN \(sql)")
                // Of a plan nothing is run: what is asked for does not matter.
                statement.setUncheckedArguments(StatementArguments())
                return try Row.fetchAll(statement).map { $0["detail"] as String }
            }
            #expect(plan.filter { !$0.contains("json_each") && !$0.contains("LIST SUBQUERY") } == [expected])
        }
    }

    enum RunLogQueries: Sendable {
        case latestInState, latest, latestWithTests, unfinished

        var clauses: String {
            switch self {
            case .latestInState: RunClauses<Database>.latestInState
            case .latest: RunClauses<Database>.latest(includingTests: false)
            case .latestWithTests: RunClauses<Database>.latest(includingTests: true)
            case .unfinished: RunClauses<Database>.unfinished
            }
        }

        var arguments: StatementArguments {
            switch self {
            case .latestInState: ["1": "c", "2": "finished", "3": 1]
            case .latest, .latestWithTests: ["1": "c", "2": 1]
            case .unfinished: ["1": "c", "2": "timer-"]
            }
        }
    }
}
