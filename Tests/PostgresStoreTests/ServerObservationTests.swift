import Foundation
import Model
@testable import PostgresStore
import Store
import StoreContract
import TestSupport
import Testing

/// What a server tells of itself, for whoever watches it.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct ServerObservationTests {
    private static func opened(
        _ body: (PostgresDatabase, PostgresCluster, String) async throws -> Void
    ) async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        let store = try await PostgresDatabase.open(url: cluster.url(database), takeoverAfter: .seconds(600))
        do {
            try await body(store, cluster, database)
            try store.close()
        } catch {
            try store.close()
            throw error
        }
    }

    @Test func `names the busy tables with those of runs that go on, and what the server is set to`() async throws {
        try await Self.opened { store, _, _ in
            _ = try await store.importDevices(try (1...20).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition(), owner: "web1:1:16:e1")
            let server = try #require(try await store.server())
            let names = Set(server.tables.map(\.name))
            #expect(names.isSuperset(of: ["chunk", "lease", "run", "sender", "silent_ledger", "silent_slot"]))
            #expect(names.contains("delivery_\(run)"), "\(names)")
            #expect(server.tables.allSatisfy { $0.bytes >= 0 && $0.deadRows >= 0 })
            #expect(server.connectionsMax == 400 && (1...400).contains(server.connectionsForUsers))
            #expect(server.connections > 0 && server.connectionsPerSender == 18 && server.bytes > 1_000_000)
            // The cluster of the tests does without.
            #expect(!server.hasFsync && !server.hasFullPageWrites && server.hasAutovacuum && server.seesAllSessions)
        }
    }

    @Test func `knows the transaction that keeps it from clearing away, and no other`() async throws {
        try await Self.opened { store, cluster, database in
            #expect(try await store.server()?.oldestTransaction == nil)
            try await withPool(cluster.url(database)) { pool in
                // One that holds a snapshot, while another one looks.
                try await pool.session { db in
                    try db.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM run")
                }
                let oldest = try await store.server()?.oldestTransaction
                #expect(oldest?.who.hasSuffix("(fanfare, idle in transaction)") == true, "\(oldest?.who ?? "none")")
                #expect(oldest.map { (.zero..<Duration.seconds(600)).contains($0.age) } == true)
                try await pool.session { db in try db.run("COMMIT") }
            }
            #expect(try await store.server()?.oldestTransaction == nil)
        }
    }
}
