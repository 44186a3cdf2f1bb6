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
            var error: PostgresError?
            for limit in Self.limits {
                error = await postgresError {
                    try await pool.write(.durable.within(limit)) { try $0.run("INSERT INTO sent VALUES (1)") }
                }
                if case .outcomeUnknown = error { break }
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

    /// A call that ends before its COMMIT changes nothing, and is made again with the next limit. The first limit lets
    /// a machine that is not busy connect and reach its COMMIT.
    private static let limits: [Duration] = [.milliseconds(200), .seconds(3), .seconds(30)]

    private static func sent(_ pool: PostgresPool) async throws -> Int? {
        try await pool.read { try $0.first("SELECT count(*) FROM sent") { try $0.int(0) } }
    }
}
