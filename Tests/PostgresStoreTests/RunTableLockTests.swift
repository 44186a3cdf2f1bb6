import Model
import Store
import StoreContract
import TestSupport
import Testing

@testable import PostgresStore

/// Reading the tables of many runs must not lock them all at once: all sessions share the server's table of locks.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct RunTableLockTests {
    @Test func `a device's history over many runs keeps no locks on their tables`() async throws {
        let cluster = try await PostgresCluster.shared
        let url = cluster.url(try await cluster.makeDatabase())
        let store = try await PostgresDatabase.open(url: url, takeoverAfter: .seconds(600))
        defer { try? store.close() }
        _ = try await store.importDevices([try record(1)], now: noon)
        let run = try await store.startRun(try definition("sent"), occurrence: "sent")
        let others = 120
        for number in 0..<others {
            _ = try await store.createEndedRun(
                try definition("missed"), occurrence: "\(number)", state: .missed, reason: "late", now: noon, by: "test"
            )
        }
        let (found, locks) = try await store.read { db in
            let found = try db.runs(ofDevice: 1, had: 500, leftOut: 500)
            let locks = try db.first("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()") { try $0.int(0) }
            return (found, locks ?? 0)
        }
        #expect(found.had.map(\.run) == [run] && found.leftOut.count == others)
        #expect(locks < 100, "\(locks) locks for \(others) runs")
        let server = try #require(try await store.server())
        #expect(server.locksOfRuns == 5 * (others + 1) && server.locksMax > 1_000)
    }
}
