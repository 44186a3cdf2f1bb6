import Foundation
import PostgresStore
import TestSupport
import Testing

/// Connections that are cut, servers that go and come back: what is known afterwards, and that it goes on.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct LostConnectionTests {
    private static let insertion: @Sendable (PostgresSession) throws -> Void = { db in
        try db.execute("INSERT INTO thing VALUES (1)")
    }

    /// A pool that goes through a proxy, over a database with one empty table.
    private func withProxy(_ body: (PostgresPool, CuttingProxy, _ count: () async throws -> Int?) async throws -> Void)
        async throws
    {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        let proxy = try CuttingProxy(to: cluster)
        try await withPool(cluster.url(database)) { direct in
            try await direct.write { try $0.run("CREATE TABLE thing (id bigint)") }
            try await withPool(proxy.url(database)) { pool in
                try await body(pool, proxy) {
                    try await direct.read { try $0.first("SELECT count(*) FROM thing") { try $0.int(0) } }
                }
            }
        }
    }

    @Test func `a commit whose answer is lost is found done, and one that never arrived is made again`() async throws {
        try await withProxy { pool, proxy, count in
            proxy.cut(.beforeAnswer(to: "COMMIT\0"))
            try await pool.write(.durable, Self.insertion)
            let rows1 = try await count()
            #expect(rows1 == 1)
            proxy.cut(.before("COMMIT\0"))
            try await pool.write(.durable, Self.insertion)
            let rows2 = try await count()
            #expect(rows2 == 2 && proxy.cuts == 2)
        }
    }

    @Test func `a commit that is not answered in time is found done`() async throws {
        try await withProxy { pool, proxy, count in
            try await pool.write { _ in }
            proxy.cut(.silence(after: "COMMIT\0"))
            // The whole time is waited for. A busy machine may need more of it to come as far as the COMMIT.
            for limit in [Duration.milliseconds(300), .seconds(3), .seconds(30)] where proxy.cuts == 0 {
                do {
                    try await pool.write(.durable.within(limit), Self.insertion)
                } catch {
                    if proxy.cuts > 0 || limit == .seconds(30) { throw error }
                }
            }
            let rows4 = try await count()
            #expect(rows4 == 1)
        }
    }

    @Test func `a read whose last answer is lost has been read`() async throws {
        try await withProxy { pool, proxy, _ in
            proxy.cut(.beforeAnswer(to: "COMMIT\0"))
            let one = try await pool.read { try $0.first("SELECT 1") { try $0.int(0) } }
            #expect(one == 1 && proxy.cuts == 1)
        }
    }

    @Test func `a commit that nobody can be asked about may have been carried out`() async throws {
        let cluster = try await PostgresCluster.own()
        let proxy = try CuttingProxy(to: cluster)
        try await withPool(cluster.url("postgres")) { direct in
            try await direct.write { try $0.run("CREATE TABLE thing (id bigint)") }
        }
        try await withPool(proxy.url("postgres")) { pool in
            let error = await postgresError {
                try await pool.write(.durable.within(.seconds(20))) { db in
                    try Self.insertion(db)
                    proxy.cut(.silence(after: "COMMIT\0"))
                    Thread {
                        while proxy.cuts == 0 { usleep(1_000) }
                        try? cluster.crash()
                        try? cluster.start()
                    }.start()
                }
            }
            guard case .outcomeUnknown = error else { return #expect(error == nil) }
        }
    }

    @Test func `a connection cut before the commit leaves nothing, for certain`() async throws {
        try await withProxy { pool, proxy, count in
            for cut in [CuttingProxy.Cut.before("INSERT"), .beforeAnswer(to: "INSERT")] {
                proxy.cut(cut)
                let error = await postgresError { try await pool.write(.durable, Self.insertion) }
                guard case .connectionLost = error else { return #expect(error == nil) }
                #expect(error?.isPassing == true)
            }
            let rows5 = try await count()
            #expect(rows5 == 0 && proxy.cuts == 2)
        }
    }

    @Test func `a statement outside of a transaction may have been carried out`() async throws {
        try await withProxy { pool, proxy, count in
            proxy.cut(.beforeAnswer(to: "INSERT INTO thing VALUES (2)"))
            let error = await postgresError { try await pool.session { try $0.run("INSERT INTO thing VALUES (2)") } }
            guard case .outcomeUnknown = error else { return #expect(error == nil) }
            let rows6 = try await count()
            #expect(rows6 == 1)
        }
    }

    @Test func `a connection that turns out to be lost at its next use is opened anew, and nobody notices`()
        async throws
    {
        try await withProxy { pool, proxy, count in
            try await pool.write(.durable, Self.insertion)
            proxy.cut(.before("BEGIN"))
            try await pool.write(.durable, Self.insertion)
            proxy.cutAll()
            try await pool.write(.durable, Self.insertion)
            let rows7 = try await count()
            #expect(rows7 == 3 && proxy.cuts == 1)
        }
    }

    @Test func `a server that was restarted or killed is found again`() async throws {
        let cluster = try await PostgresCluster.own()
        try await withPool(cluster.url("postgres")) { pool in
            try await pool.write { try $0.run("CREATE TABLE thing (id bigint)") }
            try await OwnThread.run { try cluster.stop() }
            for _ in 0..<3 {
                let error = await postgresError { try await pool.write(.durable, Self.insertion) }
                guard case .cannotConnect = error else { return #expect(error == nil) }
                #expect(error?.isPassing == true)
            }
            try await OwnThread.run { try cluster.start() }
            try await untilItPasses { try await pool.write(.durable, Self.insertion) }
            try await OwnThread.run {
                try cluster.crash()
                try cluster.start()
            }
            // The crash was noticed in between.
            try await untilItPasses { try await pool.write(.durable, Self.insertion) }
            #expect(try await pool.read { try $0.first("SELECT count(*) FROM thing") { try $0.int(0) } } == 2)
        }
    }

    @Test func `a server killed in mid-transaction keeps nothing of it`() async throws {
        let cluster = try await PostgresCluster.own()
        try await withPool(cluster.url("postgres")) { pool in
            try await pool.write { try $0.run("CREATE TABLE thing (id bigint)") }
            let error = await postgresError {
                try await pool.write { db in
                    try Self.insertion(db)
                    try cluster.crash()
                    try Self.insertion(db)
                }
            }
            guard case .connectionLost = error else { return #expect(error == nil) }
            try await OwnThread.run { try cluster.start() }
            try await untilItPasses { try await pool.write(.durable, Self.insertion) }
            #expect(try await pool.read { try $0.first("SELECT count(*) FROM thing") { try $0.int(0) } } == 1)
        }
    }

    /// Calls within the back-off fail at once; how often says nothing.
    private func untilItPasses(_ body: () async throws -> Void) async throws {
        while true {
            do { return try await body() } catch let error as PostgresError where error.isPassing {}
        }
    }
}
