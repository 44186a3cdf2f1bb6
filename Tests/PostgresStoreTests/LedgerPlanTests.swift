import Model
@testable import PostgresStore
import Store
import StoreContract
import TestSupport
import Testing

/// A ledger that was empty when a connection asked for the first time, and has grown since.
@Suite(.timeLimit(.minutes(3)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
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
                var book = CapBook()
                try CapLedger(db).look(keys, into: &book)
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

    private func withStore(_ body: (PostgresDatabase) async throws -> Void) async throws {
        let cluster = try await PostgresCluster.shared
        let url = cluster.url(try await cluster.makeDatabase())
        let store = try await PostgresDatabase.open(url: url, time: .caller)
        defer { try? store.close() }
        _ = try await store.importDevices(try (1...Self.devices).map { try record($0) }, now: noon)
        try await body(store)
    }
}
