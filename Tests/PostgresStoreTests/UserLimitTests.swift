import Model
import Store
import StoreContract
import Synchronization
import TestSupport
import Testing

@testable import PostgresStore

/// Time limits that an administrator has set for a user or a database.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct UserLimitTests {
    private final class End: Sendable {
        let hasCome = Mutex(false)
    }

    @Test func `a user's own time limits end no transaction`() async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await OwnThread.run {
            try cluster.sql("ALTER DATABASE \(database) SET lock_timeout = '1s'")
            try cluster.sql("ALTER DATABASE \(database) SET statement_timeout = '30s'")
        }
        try await withPool(cluster.url(database)) { pool in
            let limits: @Sendable (PostgresSession) throws -> [String] = { db in
                try ["lock_timeout", "statement_timeout"].map { name in
                    try db.first("SELECT current_setting($1)", name) { try $0.text(0) } ?? ""
                }
            }
            let writing = try await pool.write(.quick.within(.seconds(3600)), limits)
            let reading = try await pool.read(.reading.within(.seconds(60)), limits)
            #expect(writing == ["0", "3605s"] && reading == ["0", "65s"])
        }
    }

    @Test func `a user's own statement timeout does not end the last step of a move`() async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await PostgresDatabase.open(url: cluster.url(database)).close()
        try await OwnThread.run { _ = try cluster.sql("ALTER DATABASE \(database) SET statement_timeout = '1s'") }
        let store = try await PostgresDatabase.open(url: cluster.url(database))
        defer { try? store.close() }
        let move = StoreMove(id: "1", from: "elsewhere", to: store.path, begunAt: noon)
        try await store.beginArrival(move, namespace: store.namespace)
        let end = End()
        try await withPool(cluster.url(database)) { pool in
            let ending = try await withHeldLock(on: "device", pool) {
                let ending = Task {
                    defer { end.hasCome.withLock { $0 = true } }
                    try await store.endArrival([:], proofs: [], stops: StopOrders(), gap: nil, at: noon)
                }
                while !end.hasCome.withLock({ $0 }) {
                    let isOverdue = try await pool.read { db in
                        try db.first(
                            """
                            SELECT count(*) > 0 FROM pg_stat_activity
                            WHERE datname = current_database() AND query = 'ANALYZE' AND wait_event_type = 'Lock'
                                AND clock_timestamp() - query_start > '1500 ms'
                            """
                        ) { try $0.bool(0) }
                    }
                    if isOverdue == true { break }
                }
                return ending
            }
            try await ending.value
        }
        #expect(try await store.arrival()?.move.endedAt == noon)
    }
}
