import PostgresStore
import TestSupport
import Testing

/// A server whose synchronous standby is away: each durable COMMIT waits for it.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct `A server without its synchronous standby` {
    /// The standby may take over without the transaction. A COMMIT that is told to stop, or whose time is up on the
    /// server, succeeds without the standby.
    @Test func `confirms no commit before the standby has it`() async throws {
        let cluster = try await PostgresCluster.own()
        let database = try await cluster.makeDatabase()
        try await withPool(cluster.url(database)) { pool in
            try await pool.write(.quick) { try $0.run("CREATE TABLE sent (device bigint)") }
            // The server's processes read the settings one after the other, except at a start.
            try await OwnThread.run {
                try cluster.set("synchronous_standby_names", "'away'")
                try cluster.stop()
                try cluster.start()
            }
            // The call ends before the server's time limit, and the outcome is asked for until long after it.
            let error = await postgresError {
                try await pool.write(.durable.within(.milliseconds(200))) { try $0.run("INSERT INTO sent VALUES (1)") }
            }
            guard case .outcomeUnknown = error else {
                Issue.record("\(error.map { "\($0)" } ?? "committed")")
                return
            }
            #expect(try await Self.sent(pool) == 0)
            try await OwnThread.run {
                try cluster.sql("ALTER SYSTEM SET synchronous_standby_names = ''")
                try cluster.sql("SELECT pg_reload_conf()")
            }
            while try await Self.sent(pool) == 0 { try Task.checkCancellation() }
        }
    }

    private static func sent(_ pool: PostgresPool) async throws -> Int? {
        try await pool.read { try $0.first("SELECT count(*) FROM sent") { try $0.int(0) } }
    }
}
