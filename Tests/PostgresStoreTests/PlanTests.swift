import Dispatch
import Foundation
import Model
@testable import PostgresStore
import RelationalStore
import Store
import StoreContract
import TestSupport
import Testing

/// How the statements of the hot path reach their rows, on a store of a million deliveries.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct PlanTests {
    private static let golden = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "Fixtures/plans-postgres.txt")

    @Test func `hot statements reach their rows as the golden file says`() async throws {
        let cluster = try await PostgresCluster.shared
        let url = cluster.url(try await cluster.makeDatabase())
        let store = try await PostgresDatabase.open(url: url, time: .caller)
        defer { try? store.close() }
        let path = HotPath(store)
        let run = try await path.begin()
        try await store.write(.quick.within(.seconds(600))) { db in try Self.fill(run, db) }
        let reading = PostgresPool(try PostgresAddress(url), writers: 1, readers: 1)
        try await reading.session(limit: .seconds(600)) { db in try db.run("ANALYZE") }
        await reading.close()
        try await path.walk(run)
        var plans = StatementPlans()
        for (statement, scans) in try await Self.scans(store) { plans.add(statement, scans) }
        try plans.expect(Self.golden)
    }

    private struct Unstarted: Error {}

    /// The scans of the statements that the store's writing connections keep. Each connection has prepared others.
    private static func scans(_ store: PostgresDatabase) async throws -> [(statement: String, scans: [String])] {
        let started = DispatchGroup()
        // The limit of a transaction decides which connections it uses.
        let transactions =
            Array(repeating: PostgresTransaction.quick, count: PostgresDatabase.writersMax)
            + Array(repeating: .quick.within(.seconds(120)), count: PostgresDatabase.bulkWritersMax)
        for _ in transactions { started.enter() }
        return try await withThrowingTaskGroup(of: [(statement: String, scans: [String])].self) { group in
            for transaction in transactions {
                group.addTask {
                    try await store.write(transaction) { db in
                        started.leave()
                        // Until each connection has one of these transactions.
                        guard started.wait(timeout: .now() + 50) == .success else { throw Unstarted() }
                        return try scans(db)
                    }
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    private static func scans(_ db: PostgresSession) throws -> [(statement: String, scans: [String])] {
        try db.run("SET LOCAL plan_cache_mode = force_generic_plan")
        let statements = try db.all(
            .once("SELECT name, statement, cardinality(parameter_types) FROM pg_prepared_statements"), values: []
        ) { (name: try $0.text(0), text: try $0.text(1), count: try $0.int(2)) }
        return try statements.filter { $0.text.contains(/^\s*(WITH|SELECT|INSERT|UPDATE|DELETE)/) }.map { statement in
            let values = Array(repeating: "NULL", count: statement.count).joined(separator: ", ")
            let call = statement.name + (values.isEmpty ? "" : " (\(values))")
            let lines = try db.all(.once("EXPLAIN (COSTS OFF) EXECUTE \(call)"), values: []) { try $0.text(0) }
            return (statement.text, lines.compactMap(scan))
        }
    }

    /// The tables that hold a row for each device or delivery. The statistics of the others say that they are empty.
    private static let large = ["delivery_1", "device", "proven_first", "proven_token", "silent_ledger", "cap_ledger"]

    /// `Index Scan using delivery_1_pkey on delivery_1`; `nil` for another line, and for a small table.
    private static func scan(_ line: String) -> String? {
        guard let found = line.firstMatch(of: /((Seq|Index|Index Only|Bitmap Heap) Scan .*on (\w+))/) else {
            return nil
        }
        return large.contains(String(found.3)) ? String(found.1) : nil
    }

    private static func fill(_ run: Int64, _ db: PostgresSession) throws {
        let table = DeliveryTable(run: run).name
        try db.run(
            """
            INSERT INTO device (id, topic_id, environment, token, locale, installation_id, user_id)
            SELECT n, (SELECT id FROM topic), 0, decode(md5(n::text) || md5('b' || n), 'hex'), 'en', 'install-' || n,
                'user-' || (n / 2)
            FROM generate_series(1001, \(HotPath.devices)) AS n
            """)
        try db.run(
            """
            INSERT INTO \(table) (
                run_id, device_id, environment, state, attempt, doubts, excused, leases, generation, not_before, status,
                changed_at
            )
            SELECT \(run), n, 0, CASE WHEN n > \(HotPath.devices) THEN 1 ELSE 0 END, 0, 0, 0, 0, 1,
                CASE WHEN n > \(HotPath.fresh) AND n <= \(HotPath.devices) THEN \(noon.milliseconds) END, 200,
                \(noon.milliseconds)
            FROM generate_series(1, \(HotPath.deliveries)) AS n
            """)
        try db.run(
            """
            INSERT INTO proven_first (block, bits) SELECT n, -1 FROM generate_series(1, \(HotPath.devices / 64)) AS n;
            INSERT INTO proven_token (device_id, token_generation) SELECT n, 2 FROM generate_series(1, \(HotPath.devices)) AS n;
            INSERT INTO silent_ledger (device_id, run_id, lease_number, reserved_at, settled_at)
            SELECT n, 0, 1, \(noon.milliseconds), \(noon.milliseconds) FROM generate_series(1001, \(HotPath.devices)) AS n;
            INSERT INTO cap_ledger (kind, id, latest, pushes)
            SELECT \(CapKey.Kind.devices.rawValue), n, 0, '' FROM generate_series(1001, \(HotPath.devices)) AS n
            """)
        try db.run(
            """
            INSERT INTO chunk (run_id, environment, next_device, last_device)
            SELECT \(run), 0, n, n + 999
            FROM generate_series(1, \(HotPath.fresh), 1000) AS n
            """)
        try db.run(
            """
            UPDATE run SET is_frozen = true, audience = \(HotPath.deliveries),
                pending = \(HotPath.devices), accepted = \(HotPath.deliveries - HotPath.devices)
            WHERE id = \(run)
            """)
    }
}
