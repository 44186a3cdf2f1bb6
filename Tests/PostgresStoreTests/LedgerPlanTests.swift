import Dispatch
import Model
@testable import PostgresStore
import Store
import StoreContract
import TestSupport
import Testing

/// A ledger that was empty when a connection asked for the first time, and has grown since.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct LedgerPlanTests {
    /// After so many calls a connection keeps its plan of a prepared statement.
    private static let calls = 8
    private static let devices = 100

    /// How often the session has read the whole of a table. Counts of earlier transactions are part of it.
    private func scans(_ table: String, _ db: PostgresSession) throws -> Int? {
        try db.first("SELECT pg_stat_get_xact_numscans($1::text::regclass)", table) { try $0.int(0) }
    }

    @Test func `a lease reads the rows of its devices, not the whole silent ledger`() async throws {
        try await withStore { store in
            let standing: @Sendable (PostgresSession) throws -> Void = { db in
                _ = try SilentLedger(db).standing(of: Array(1...50), at: noon, Configuration.SilentBudget(), after: [])
            }
            for _ in 0..<Self.calls { try await store.write(.quick, standing) }
            try await store.write(.quick) { db in
                try db.execute(
                    """
                    INSERT INTO silent_ledger (device_id, run_id, lease_number, reserved_at, settled_at)
                    SELECT n, 1, 1, $1, NULL FROM generate_series(1, 200000) AS n
                    """, noon)
            }
            let found = try await store.write(.quick) { db in
                let before = try self.scans("silent_ledger", db) ?? 0
                try standing(db)
                return try (self.scans("silent_ledger", db) ?? 0) - before
            }
            #expect(found == 0)
        }
    }

    @Test func `a lease reads the rows of its devices, not the whole ledger of caps`() async throws {
        try await withStore { store in
            let keys = Set((1...50).map { CapKey(.devices, $0) })
            let look: @Sendable (PostgresSession) throws -> Void = { db in
                var usage = CapUsage()
                try CapLedger(db).look(keys, into: &usage)
            }
            for _ in 0..<Self.calls { try await store.write(.quick, look) }
            try await store.write(.quick) { db in
                try db.execute(
                    """
                    INSERT INTO cap_ledger (kind, id, latest, pushes) SELECT $1::bigint, n, 0, '' FROM generate_series(1, 200000) AS n
                    """, CapKey.Kind.devices.rawValue)
            }
            let found = try await store.write(.quick) { db in
                let before = try self.scans("cap_ledger", db) ?? 0
                try look(db)
                return try (self.scans("cap_ledger", db) ?? 0) - before
            }
            #expect(found == 0)
        }
    }

    /// Blocks of the index of waiting deliveries that the session has fetched.
    private static func fetched(_ run: Int64, _ db: PostgresSession) throws -> Int {
        try db.first(
            """
            SELECT sum(pg_stat_get_xact_blocks_fetched(indexrelid))::bigint FROM pg_index
            WHERE indrelid = $1::text::regclass AND pg_get_indexdef(indexrelid) LIKE '%not_before%'
            """, DeliveryTable(run: run).name
        ) { try $0.int(0) } ?? 0
    }

    /// A run of which all deliveries were put off and are due, by the server's clock.
    private func withDueRun(_ body: (PostgresDatabase, LeaseRequest, PostgresAddress) async throws -> Void) async throws
    {
        let cluster = try await PostgresCluster.shared
        let url = cluster.url(try await cluster.makeDatabase())
        let store = try await PostgresDatabase.open(url: url)
        defer { try? store.close() }
        _ = try await store.importDevices(try (1...Self.due).map { try record($0) }, now: noon)
        let run = try await store.createRun(try definition(), occurrence: "x", now: noon, by: "test").run.id
        #expect(try await store.claim(run, by: "a", now: noon) == .claimed)
        _ = try await store.freeze(run, by: "a", now: noon) { _ in }
        try await store.write(.quick) { db in
            try db.execute("DELETE FROM chunk WHERE run_id = $1", run)
            try db.execute("UPDATE \(DeliveryTable(run: run).name) SET not_before = \(StoreTime.now) - 1000")
        }
        let request = LeaseRequest(
            run: run, environment: .production, after: 0, limit: Self.due / 20, now: noon, owner: "a")
        try await body(store, request, try PostgresAddress(url))
    }

    private static let due = 20_000

    @Test func `a lease walks past no dead entries of earlier ones, however old the oldest snapshot is`() async throws {
        try await withDueRun { store, request, address in
            let other = PostgresPool(address, writers: 0, readers: 1)
            let (held, holds) = AsyncStream.makeStream(of: Void.self)
            let gate = DispatchSemaphore(value: 0)
            async let snapshot: Void = other.read(.reading.within(.seconds(120))) { db in
                _ = try db.first("SELECT count(*) FROM run") { try $0.int(0) }
                holds.finish()
                // Not for ever where the test ends early.
                _ = gate.wait(timeout: .now() + 60)
            }
            for await _ in held {}
            // What stands before the bound from here on is dead, and cannot be removed.
            var leased: Set<Int64> = []
            for _ in 0..<19 { leased.formUnion(try await store.lease(request).deliveries.map(\.device)) }
            #expect(leased.count == 19 * Self.due / 20)
            let bound = store.dueBounds.next(request, at: .now - .seconds(60))
            #expect(bound != .start)
            let (near, far) = try await store.write(.quick) { db in
                func walk(from bound: DueBound) throws -> Int {
                    let before = try Self.fetched(request.run, db)
                    _ = try LeaseCandidates(db, request).due(limit: 10, from: bound)
                    return try Self.fetched(request.run, db) - before
                }
                return (try walk(from: bound), try walk(from: .start))
            }
            #expect(near > 0 && far > 4 * near, "\(near) blocks from the bound, \(far) from the start")
            gate.signal()
            try await snapshot
            await other.close()
        }
    }

    @Test func `a delivery that comes to lie before the bound is leased by the next look from the start`() async throws
    {
        try await withDueRun { store, request, _ in
            for _ in 0..<3 { _ = try await store.lease(request) }
            let bound = store.dueBounds.next(request, at: .now - .seconds(60))
            #expect(bound != .start)
            let left = try #require(try await store.lease(request).deliveries.last?.device)
            // Another sender gives it back, as of long ago.
            try await store.write(.quick) { db in
                try db.execute(
                    "UPDATE \(DeliveryTable(run: request.run).name) SET not_before = 1 WHERE device_id = $1", left)
            }
            let (near, far) = try await store.write(.quick) { db in
                func walk(from bound: DueBound) throws -> [Int64] {
                    try LeaseCandidates(db, request).due(limit: 10, from: bound).candidates.map(\.delivery.device)
                }
                return (try walk(from: bound), try walk(from: .start))
            }
            #expect(!near.isEmpty && !near.contains(left) && far.first == left)
            #expect(
                store.dueBounds.next(request, at: .now + DueBounds.wholeEvery) == .start,
                "it looks from the start again")
            store.dueBounds.forget(run: request.run)
            #expect(try await store.lease(request).deliveries.map(\.device).contains(left))
        }
    }

    private func withStore(_ body: (PostgresDatabase) async throws -> Void) async throws {
        let cluster = try await PostgresCluster.shared
        let url = cluster.url(try await cluster.makeDatabase())
        let store = try await PostgresDatabase.open(url: url, time: .caller)
        defer { try? store.close() }
        _ = try await store.importDevices(try (1...Self.devices).map { try record($0) }, now: noon)
        try await body(store)
    }
}
