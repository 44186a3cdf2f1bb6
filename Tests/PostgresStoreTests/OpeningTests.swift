import Foundation
import Model
import Store
import StoreContract
import TestSupport
import Testing

@testable import PostgresStore

/// What a URL must lead to before a store is opened, or made, there; whatever is refused stays as it was.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct OpeningTests {
    private func withDatabase(_ body: (PostgresCluster, _ database: String) async throws -> Void) async throws {
        let cluster = try await PostgresCluster.shared
        try await body(cluster, try await cluster.makeDatabase())
    }

    private func sql(_ text: String, _ cluster: PostgresCluster, _ database: String) async throws -> String {
        try await OwnThread.run { try cluster.sql(text, database: database) }
    }

    private let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"

    private func fault(_ url: String, _ access: StoreAccess = .making) async throws -> StoreOpeningFault? {
        do {
            try await PostgresDatabase.open(url: url, access: access).close()
            return nil
        } catch let fault as StoreOpeningFault {
            #expect(!fault.description.contains("\n") && fault.description.contains("; "))
            return fault
        }
    }

    @Test func `the text of a migration is what stores were made with`() {
        #expect(
            FNV1a.hash(SchemaVersion1.sql) == Self.hash1, "a released migration was edited: write a new one instead")
    }

    private static let hash1: UInt64 = 5_097_610_773_632_357_499

    @Test func `an empty database becomes a store, and keeps its name`() async throws {
        try await withDatabase { cluster, database in
            let store = try await PostgresDatabase.open(url: cluster.url(database))
            let again = try await PostgresDatabase.open(url: cluster.url(database), access: .writing)
            let reading = try await PostgresDatabase.open(url: cluster.url(database), access: .reading)
            #expect(store.namespace == again.namespace && store.namespace == reading.namespace)
            #expect(store.namespace != (0, 0))
            for store in [store, again, reading] { try store.close() }
        }
    }

    @Test func `processes that start together make one store`() async throws {
        try await withDatabase { cluster, database in
            let names = try await withThrowingTaskGroup(of: [UInt64].self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        let store = try await PostgresDatabase.open(url: cluster.url(database))
                        try store.close()
                        return [store.namespace.high, store.namespace.low]
                    }
                }
                return try await group.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(names.count == 1)
            #expect(
                try await sql("SELECT count(*) FROM fanfare_migration", cluster, database) == "\(Schema.version)")
        }
    }

    @Test func `a store brought up to date under a sender takes no lease and no heartbeat of it`() async throws {
        try await withDatabase { cluster, database in
            let url = cluster.url(database)
            let store = try await PostgresDatabase.open(url: url, takeoverAfter: .seconds(10))
            _ = try await store.importDevices([try record(1), try record(2)], now: noon)
            let run = try await store.startRun(try definition())
            let next = Schema.migrations + ["SELECT 1"]
            // The sender of the older version is alive, however long all this has taken.
            try await store.beat("a", SenderFacts())
            await #expect(throws: StoreError.self) {
                try await store.pool.session { db in try Schema.migrate(db, next) }
            }
            #expect(try await store.lease(run, limit: 1).deliveries.count == 1)
            // A heartbeat in the future is one from before the clock was set back.
            try await store.pool.write { db in
                _ = try db.execute("UPDATE sender SET heartbeat_at = heartbeat_at + 86400000")
            }
            try await store.pool.session { db in try Schema.migrate(db, next) }
            let newer = StoreError.newerVersion(
                path: store.path, found: Schema.version + 1, known: Schema.version)
            await #expect(throws: newer) { try await store.lease(run, limit: 1) }
            await #expect(throws: newer) { try await store.beat("a", SenderFacts()) }
            await #expect(throws: newer) { try await store.heartbeat(run, owner: "a", now: noon) }
            try store.close()
        }
    }

    @Test(arguments: 1..<5)
    func `a token that an earlier version recorded as proven stays so`(version: Int) async throws {
        try await withDatabase { cluster, database in
            try await withPool(cluster.url(database)) { pool in
                try await pool.session { try Schema.migrate($0, Array(Schema.migrations.prefix(version))) }
            }
            _ = try await sql("INSERT INTO topic (id, name) VALUES (1, '\(wendercast)')", cluster, database)
            for device in EarlierProofs.devices {
                _ = try await sql(
                    """
                    INSERT INTO device (id, topic_id, environment, token, token_generation)
                    VALUES (\(device.id), 1, 0, decode(md5('\(device.id)') || md5('b'), 'hex'), \(device.generation));
                    INSERT INTO proven_token (device_id, token_generation)
                    SELECT \(device.id), \(device.proven) WHERE \(device.proven) > 0;
                    SELECT setval('device_id_seq', \(device.id))
                    """, cluster, database)
            }
            let store = try await PostgresDatabase.open(url: cluster.url(database))
            for device in EarlierProofs.devices {
                #expect(try await store.device(device.id)?.isProven == device.isProven, "\(device)")
            }
            #expect(try await store.verify(budgets: [:]).isSound)
            try store.close()
        }
    }

    @Test func `a migration that fails leaves nothing`() async throws {
        try await withDatabase { cluster, database in
            try await withPool(cluster.url(database)) { pool in
                let error = await postgresError {
                    try await pool.session { try Schema.migrate($0, [SchemaVersion1.sql + "; SELECT 1 / 0"]) }
                }
                #expect(error?.kind == .other)
            }
            #expect(try await sql(tables, cluster, database) == "0")
            #expect(try await fault(cluster.url(database)) == nil)
        }
    }

    @Test func `a store that a newer version wrote is refused, and an older one where nothing may be written`()
        async throws
    {
        try await withDatabase { cluster, database in
            let server = try PostgresAddress(cluster.url(database)).description
            #expect(try await fault(cluster.url(database)) == nil)
            _ = try await sql("INSERT INTO fanfare_migration VALUES (99, 0)", cluster, database)
            for access in [StoreAccess.making, .writing, .reading] {
                #expect(
                    try await fault(cluster.url(database), access)
                        == .newerVersion(server: server, found: 99, known: Schema.version))
            }
            _ = try await sql("UPDATE fanfare_migration SET version = 0 WHERE version = 99", cluster, database)
            _ = try await sql("DELETE FROM fanfare_migration WHERE version > 0", cluster, database)
            #expect(
                try await fault(cluster.url(database), .reading)
                    == .olderVersion(server: server, found: 0, known: Schema.version))
        }
    }

    @Test(arguments: [StoreAccess.making, .writing, .reading])
    func `a database that holds something else is refused`(access: StoreAccess) async throws {
        try await withDatabase { cluster, database in
            _ = try await sql("CREATE TABLE device (id int); CREATE VIEW other AS SELECT 1", cluster, database)
            let server = try PostgresAddress(cluster.url(database)).description
            #expect(
                try await fault(cluster.url(database), access)
                    == .otherProgram(server: server, tables: ["device", "other"]))
            // Of the two, the row types and nothing of ours.
            #expect(try await sql(tables, cluster, database) == "2")
        }
    }

    @Test(arguments: [StoreAccess.writing, .reading])
    func `an empty database is no store for whoever may not make one`(access: StoreAccess) async throws {
        try await withDatabase { cluster, database in
            let server = try PostgresAddress(cluster.url(database)).description
            #expect(try await fault(cluster.url(database), access) == .noStore(server: server))
            #expect(try await sql(tables, cluster, database) == "0")
        }
    }

    @Test func `rights that are missing are said`() async throws {
        try await withDatabase { cluster, database in
            let role = "role_\(database)"
            _ = try await sql("CREATE ROLE \(role) LOGIN", cluster, database)
            let url = cluster.url(database, user: role)
            let server = try PostgresAddress(url).description
            #expect(try await fault(url) == .mayNotCreate(server: server, schema: "public"))
            #expect(try await fault(cluster.url(database)) == nil)
            let refused = try await fault(url, .writing)
            guard case .mayNotUse(_, let tables) = refused else { return #expect(refused == nil) }
            #expect(tables.first == "fanfare_migration")
            _ = try await sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO \(role)", cluster, database)
            #expect(try await fault(url, .reading) == nil)
            guard case .mayNotUse = try await fault(url, .writing) else { return #expect(Bool(false)) }
            _ = try await sql("REVOKE USAGE ON SCHEMA public FROM PUBLIC", cluster, database)
            #expect(try await fault(url, .reading) == .noSchema(server: server))
        }
    }

    @Test func `a database that is set to read only, or of another encoding, is refused`() async throws {
        try await withDatabase { cluster, database in
            let server = try PostgresAddress(cluster.url(database)).description
            _ = try await sql(
                "ALTER DATABASE \(database) SET default_transaction_read_only = on", cluster, "postgres")
            #expect(try await fault(cluster.url(database)) == .readOnly(server: server, isReplica: false))
            let latin = "\(database)_latin"
            _ = try await sql(
                "CREATE DATABASE \(latin) TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'", cluster, "postgres")
            let other = try PostgresAddress(cluster.url(latin)).description
            #expect(try await fault(cluster.url(latin)) == .encoding(server: other, found: "LATIN1"))
            #expect(try await sql(tables, cluster, latin) == "0")
        }
    }

    @Test func `a replica is refused until it is promoted, and passed over where the primary is named as well`()
        async throws
    {
        let primary = try await PostgresCluster.own()
        let store = try await PostgresDatabase.open(url: primary.url("postgres"))
        let replica = try await PostgresCluster.replica(of: primary)
        let server = try PostgresAddress(replica.url("postgres")).description
        for access in [StoreAccess.making, .writing] {
            #expect(
                try await fault(replica.url("postgres"), access) == .readOnly(server: server, isReplica: true))
        }
        #expect(try await fault(replica.url("postgres"), .reading) == nil)
        let both = "postgres://postgres@/postgres?host=\(replica.folder),\(primary.folder)"
        let failingOver = try await PostgresDatabase.open(url: both, access: .writing)
        #expect(failingOver.namespace == store.namespace)
        try await OwnThread.run {
            try primary.crash()
            try replica.promote()
        }
        // The connection to the dead one is given up, and the new primary taken.
        while true {
            do {
                try await failingOver.pool.write { try $0.execute("DELETE FROM webhook") }
                break
            } catch let error as PostgresError where error.isPassing {}
        }
        try store.close()
        try failingOver.close()
    }

    /// What the figures of the design rest on: an index that knew the state would be written for each of them.
    @Test func `an outcome changes no index, and a run's outcomes are gone with its table`() async throws {
        try await withDatabase { cluster, database in
            let store = try await PostgresDatabase.open(url: cluster.url(database))
            try await store.pool.write { db in
                try db.run(
                    "CREATE TABLE delivery_7 PARTITION OF delivery (PRIMARY KEY (device_id)) FOR VALUES IN (7) WITH (fillfactor = 50)"
                )
                let devices = (1...5_000).map { Int64($0) }
                try db.execute(
                    """
                    INSERT INTO delivery (run_id, device_id, generation, changed_at, attempt, doubts, excused, leases,
                        environment, state, status)
                    SELECT 7, device, 1, 0, 0, 0, 0, 0, 0, 0, 0 FROM unnest($1) AS device
                    """, devices)
            }
            try await store.pool.write { db in
                try db.execute("UPDATE delivery SET state = 1, attempt = 1, status = 200 WHERE run_id = 7")
            }
            try await waitUntil(
                store.pool, "SELECT n_tup_upd = 5000 FROM pg_stat_user_tables WHERE relname = 'delivery_7'")
            let hot = try await store.pool.read { db in
                try db.first("SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'delivery_7'") {
                    try $0.int(0)
                }
            }
            #expect(hot == 5_000)
            try await store.pool.write { try $0.run("DROP TABLE delivery_7") }
            let rest = try await store.pool.read { db in
                try db.first("SELECT count(*) FROM delivery") { try $0.int(0) }
            }
            #expect(rest == 0)
            try store.close()
        }
    }

    @Test func `texts compare by code point, and analysts find their views`() async throws {
        try await withDatabase { cluster, database in
            #expect(try await fault(cluster.url(database)) == nil)
            let others = try await sql(
                """
                SELECT count(*) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
                WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND atttypid = 'text'::regtype
                    AND attcollation <> (SELECT oid FROM pg_collation WHERE collname = 'C')
                """, cluster, database)
            #expect(others == "0")
            for view in ["device_view", "tag_view", "segment_view", "delivery_view", "run_view"] {
                #expect(try await sql("SELECT count(*) FROM \(view)", cluster, database) == "0")
            }
        }
    }
}
