import Foundation
import Model
import Store
import TestSupport
import Testing

@testable import PostgresStore

/// Addresses that name several hosts, and names that lead to another host later.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct HostsTests {
    private func url(_ hosts: String..., database: String = "postgres") -> String {
        "postgres://postgres@/\(database)?host=\(hosts.joined(separator: ","))"
    }

    @Test func `a first host that does not respond leaves time for the next, and is then tried last`() async throws {
        let (silent, cluster) = (try SilentServer(), try await PostgresCluster.shared)
        let database = try await cluster.makeDatabase()
        try await withPool(url(silent.folder, cluster.folder, database: database)) { pool in
            // As long as a heartbeat has. A slow machine may need a second call, which begins with the other host.
            var error: PostgresError?
            for _ in 0..<20 {
                error = await postgresError { try await pool.write(.quick.within(.seconds(3))) { _ in } }
                if error == nil { break }
            }
            #expect(error == nil)
            let tries = silent.connections
            #expect(tries > 0)
            let other = PostgresPool(beside: pool, writers: 1, readers: 3)
            try await other.write { _ in }
            try await other.read { _ in }
            #expect(silent.connections == tries)
            await other.close()
        }
    }

    @Test func `all connections of a store know the host that responds`() async throws {
        let (silent, cluster) = (try SilentServer(), try await PostgresCluster.shared)
        let database = try await cluster.makeDatabase()
        let store = try await PostgresDatabase.open(
            url: url(silent.folder, cluster.folder, database: database) + "&connect_timeout=1",
            takeoverAfter: .seconds(600))
        defer { try? store.close() }
        try await store.beat("web1:1:16:e1", SenderFacts())
        _ = try await store.stops()
        _ = try await store.server()
        #expect(silent.connections == 1)
    }

    @Test func `an only host that does not respond is unreachable, also within a short call`() async throws {
        let silent = try SilentServer()
        try await withPool(url(silent.folder)) { pool in
            let error = await postgresError { try await pool.read(.reading.within(.milliseconds(100))) { _ in } }
            guard case .cannotConnect(_, nil, let reason) = error else { return #expect(error == nil) }
            #expect(reason.contains("did not respond") && error?.isUnreachable == true && error?.isPassing == true)
        }
    }

    @Test func `hosts are tried in turn, from the one that was opened last`() throws {
        let hosts = PostgresHosts(try PostgresAddress("postgres://a,b,c/d"))
        #expect(hosts.order == [0, 1, 2] && !hosts.hasOpened)
        hosts.noteSilent(1)
        #expect(hosts.order == [0, 1, 2])
        hosts.noteSilent(0)
        #expect(hosts.order == [1, 2, 0] && !hosts.hasOpened)
        hosts.noteOpened(2)
        #expect(hosts.order == [2, 0, 1] && hosts.hasOpened)
        hosts.noteSilent(2)
        #expect(hosts.order == [0, 1, 2])
    }

    @Test func `a refused login is not hidden by a standby, whichever comes first`() async throws {
        let (cluster, other) = (try await PostgresCluster.shared, try await PostgresCluster.own())
        let database = try await cluster.makeDatabase()
        let role = "only_\(database)"
        try await OwnThread.run {
            try cluster.sql("CREATE ROLE \(role) LOGIN")
            try cluster.sql("ALTER DATABASE \(database) SET default_transaction_read_only = on")
        }
        for folders in [[cluster.folder, other.folder], [other.folder, cluster.folder]] {
            let hosts = folders.joined(separator: ",")
            try await withPool("postgres://\(role)@/\(database)?host=\(hosts)") { pool in
                let error = await postgresError { try await pool.read { _ in } }
                #expect(error?.kind == .wrongLogin, "\(error as Any)")
            }
        }
    }

    @Test func `the error of several hosts is the one that says most`() {
        func unopened(_ code: String?) -> PostgresError {
            .cannotConnect(
                server: "s", fault: code.map { ServerFault(sqlstate: $0, message: "m", isFatal: true) },
                reason: code ?? "")
        }
        let (silent, standby, refused, starting) = (nil as String?, "25006", "28P01", "57P03")
        for (first, second, reported) in [
            (silent, standby, silent), (standby, silent, silent), (refused, standby, refused),
            (standby, refused, refused), (refused, silent, refused), (silent, refused, refused),
            (standby, standby, standby), (starting, standby, starting),
        ] {
            #expect(unopened(first).moreSignificant(than: unopened(second)) == unopened(reported))
        }
    }

    @Test func `an error of opening that may pass is no fault of the settings`() {
        for (code, isUnreachable) in [
            ("25006", true), ("53100", true), ("53200", true), ("58030", true), ("53300", true), ("57P03", true),
            ("08P01", true), ("28P01", false), ("28000", false), ("3D000", false), ("42501", false),
        ] {
            let fault = ServerFault(sqlstate: code, message: "m", isFatal: true)
            let error = PostgresError.cannotConnect(server: "s", fault: fault, reason: "m")
            #expect(error.isUnreachable == isUnreachable, "\(code)")
        }
        let tls = PostgresError.cannotConnect(server: "s", fault: nil, reason: "SSL error: certificate verify failed")
        #expect(!tls.isUnreachable && !tls.isBusy)
        #expect(PostgresError.refused(ServerFault(sqlstate: "25006", message: "m"), server: "s").isUnreachable)
    }

    @Test func `a pooler's refusal of one more connection leaves the work to the open ones`() {
        for (code, isRefused) in [("08P01", true), ("53300", true), ("28P01", true), ("08006", false)] {
            let fault = ServerFault(sqlstate: code, message: "no more connections allowed", isFatal: true)
            let error = PostgresError.cannotConnect(server: "s", fault: fault, reason: "m")
            #expect(error.isRefusedOpening == isRefused, "\(code)")
        }
    }

    @Test func `a writer leaves a server that became read only, for the one to which its name leads now`() async throws
    {
        let primary = try await PostgresCluster.own()
        let replica = try await PostgresCluster.replica(of: primary)
        let folder = try TemporaryDirectory()
        let name = folder.file("db")
        func lead(to cluster: PostgresCluster) throws {
            try? FileManager.default.removeItem(atPath: name)
            try FileManager.default.createSymbolicLink(atPath: name, withDestinationPath: cluster.folder)
        }
        try lead(to: replica)
        try await withPool(url(name)) { pool in
            let write = { try await pool.write { try $0.run("CREATE TABLE IF NOT EXISTS thing ()") } }
            let analyze = { try await pool.session { try $0.run("ANALYZE") } }
            #expect(await postgresError(write)?.kind == .readOnly)
            #expect(await postgresError(analyze)?.kind == .readOnly)
            try lead(to: primary)
            try await write()
            try await analyze()
        }
    }
}
