import Foundation
import TestSupport
import Testing

/// The ground that the other suites stand on.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct ClusterTests {
    /// As when its process is killed: the kernel closes what the watcher waits for.
    @Test func `a cluster that nobody has any more is ended, and its folder is gone`() async throws {
        var cluster: PostgresCluster? = try await PostgresCluster.own()
        let folder = try #require(cluster?.folder)
        let processes = try await OwnThread.run { [cluster] in try cluster?.sql("SELECT pg_backend_pid()") }
        #expect(processes?.isEmpty == false)
        cluster = nil
        while FileManager.default.fileExists(atPath: folder) { await Task.yield() }
    }

    @Test func `two databases of a cluster know nothing of each other`() async throws {
        let cluster = try await PostgresCluster.shared
        let (first, second) = (try await cluster.makeDatabase(), try await cluster.makeDatabase())
        let found = try await OwnThread.run {
            try cluster.sql("CREATE TABLE thing ()", database: first)
            return try cluster.sql("SELECT count(*) FROM pg_class WHERE relname = 'thing'", database: second)
        }
        #expect(found == "0")
    }
}
