import Model
import Store
import StoreContract
import TestSupport
import Testing

@testable import PostgresStore

/// A server that is back before its senders would be missed.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct `A server that was restarted` {
    private static let names = ["web1:1:16:e1", "web2:1:16:e2"]

    /// One comes back at once; the other one has as long as after a long outage.
    @Test func `gives each sender the whole takeover timeout to come back`() async throws {
        let cluster = try await PostgresCluster.own()
        let database = try await cluster.makeDatabase()
        func open() async throws -> PostgresDatabase {
            try await .open(url: cluster.url(database), takeoverAfter: .seconds(600))
        }
        let before = try await open()
        _ = try await before.importDevices(try (1...30).map { try record($0) }, now: noon)
        let run = try await before.startRun(try definition(), owner: Self.names[0])
        _ = try await before.lease(run, limit: 10, owner: Self.names[0])
        try await before.beat(Self.names[1], SenderFacts())
        try before.close()
        try await OwnThread.run {
            try cluster.stop()
            try cluster.start()
            // As on a slow machine: one was heard of until the end, the other one not for a while before it.
            try cluster.sql(
                """
                UPDATE sender SET heartbeat_at = floor(extract(epoch FROM pg_postmaster_start_time()) * 1000)
                    - CASE name WHEN '\(Self.names[0])' THEN 3600000 ELSE 100 END
                """, database: database)
        }
        let store = try await open()
        try await store.beat(Self.names[1], SenderFacts())
        #expect(try await store.takeOverLeases(of: run, besides: nil).isEmpty)
        // The quiet time is one: it ends, and does not begin again.
        _ = try await OwnThread.run { try cluster.sql("UPDATE sender_quiet SET until = 0", database: database) }
        #expect(try await store.takeOverLeases(of: run, besides: nil) == [Self.names[0]])
        try store.close()
    }
}
