import Foundation
import Model
import Store
import TestSupport
import Testing

@testable import PostgresStore

/// Who may connect, to whom, and what is said when not. No error holds the password.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct LoginTests {
    /// A server that asks for passwords and speaks TLS on a loopback port; its certificate is for `localhost`.
    private final class Server: Sendable {
        let cluster: PostgresCluster
        let folder: TemporaryDirectory

        var port: Int { cluster.port }

        init() async throws {
            let folder = try TemporaryDirectory()
            self.folder = folder
            for name in ["ca", "other"] {
                try OpenSSLCommand.run(
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=\(name)", "-keyout", folder.file("\(name).key"), "-out", folder.file("\(name).pem"))
            }
            try OpenSSLCommand.run(
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-CA", folder.file("ca.pem"),
                "-CAkey", folder.file("ca.key"), "-keyout", folder.file("server.key"), "-out", folder.file("server.pem")
            )
            try PostgresCluster.give(folder.file("server.key"))
            var options = PostgresCluster.Options()
            options.hasFsync = false
            options.hasPort = true
            options.settings = [
                "ssl": "on", "ssl_cert_file": "'\(folder.file("server.pem"))'",
                "ssl_key_file": "'\(folder.file("server.key"))'",
            ]
            options.access = ["hostssl all all 127.0.0.1/32 scram-sha-256", "local all anna scram-sha-256"]
            let cluster = try await PostgresCluster.own(options)
            self.cluster = cluster
            try await OwnThread.run {
                try cluster.sql("CREATE ROLE anna LOGIN PASSWORD 'hunter2'; CREATE ROLE few LOGIN CONNECTION LIMIT 0")
                try cluster.sql("CREATE DATABASE still")
                try cluster.sql("ALTER DATABASE still SET default_transaction_read_only = on")
            }
        }
    }

    private static let starting = Task { try await Server() }

    /// What a URL leads to: nil when it opens.
    private func outcome(of url: String) async throws -> (any Error)? {
        try await withPool(url) { pool in
            do {
                try await pool.read { db in _ = try db.rows("SELECT 1") }
                return nil
            } catch {
                let text = "\(error)"
                #expect(!text.contains("hunter") && !text.contains("\n"), "\(text)")
                return error
            }
        }
    }

    @Test func `a password comes from the URL, a file of its own, or one of libpq's`() async throws {
        let server = try await Self.starting.value
        let place = "localhost:\(server.port)/postgres?sslmode=require"
        try server.folder.write("hunter2\n", to: "password")
        let passfile = try server.folder.write("localhost:*:*:anna:hunter2\n", to: "passfile")
        chmod(passfile, 0o600)
        #expect(try await outcome(of: "postgres://anna:hunter2@\(place)") == nil)
        #expect(
            try await outcome(of: "postgres://anna@\(place)&password_file=\(server.folder.file("password"))") == nil)
        #expect(try await outcome(of: "postgres://anna@\(place)&passfile=\(passfile)") == nil)
        #expect(
            try await outcome(of: "postgres://anna:hunter2@/postgres?host=\(server.cluster.folder)&port=\(server.port)")
                == nil)
    }

    @Test func `a wrong password, a missing one and one that cannot be read are told apart from a server that is away`()
        async throws
    {
        let server = try await Self.starting.value
        let place = "localhost:\(server.port)/postgres?passfile=/dev/null"
        let wrong = try await outcome(of: "postgres://anna:hunter3@\(place)") as? PostgresError
        #expect(
            wrong?.kind == .wrongLogin && wrong?.isPassing == false
                && "\(wrong as Any)".contains("correct the user and"))
        let missing = try await outcome(of: "postgres://anna@\(place)") as? PostgresError
        #expect("\(missing as Any)".contains("no password supplied"))
        let unreadable = try await outcome(of: "postgres://anna@\(place)&password_file=/nonexistent")
        #expect(
            unreadable as? PostgresAddressFault
                == .unreadablePassword(path: "/nonexistent", reason: "there is no file"))
    }

    @Test func `TLS is refused unless the server proves its name`() async throws {
        let server = try await Self.starting.value
        let (ca, other) = (server.folder.file("ca.pem"), server.folder.file("other.pem"))
        let login = "postgres://anna:hunter2@"
        let options = "\(server.port)/postgres?sslmode=verify-full"
        #expect(try await outcome(of: "\(login)localhost:\(options)&sslrootcert=\(ca)") == nil)
        for url in [
            "\(login)localhost:\(options)&sslrootcert=\(other)", "\(login)127.0.0.1:\(options)&sslrootcert=\(ca)",
            "\(login)localhost:\(options)", "\(login)localhost:\(options)&sslrootcert=/nonexistent",
        ] {
            let error = try await outcome(of: url)
            #expect("\(error as Any)".contains("?sslrootcert=FILE"), "\(error as Any)")
        }
        #expect(try await outcome(of: "\(login)127.0.0.1:\(server.port)/postgres?sslmode=disable") != nil)
    }

    @Test func `a database that is not there, and too many connections, are said`() async throws {
        let cluster = try await Self.starting.value.cluster
        let none = try await outcome(of: cluster.url("nothing")) as? PostgresError
        #expect(none?.kind == .noDatabase && none?.isPassing == false)
        let full = try await outcome(of: cluster.url("postgres", user: "few")) as? PostgresError
        #expect(full?.kind == .outOfConnections && full?.isPassing == true)
    }

    @Test(arguments: ["NOLOGIN", "CONNECTION LIMIT 1"])
    func `a connection that is refused leaves its work to those that are open`(change: String) async throws {
        let cluster = try await Self.starting.value.cluster
        let role = "late_\(change.count)"
        try await OwnThread.run { _ = try cluster.sql("CREATE ROLE \(role) LOGIN") }
        try await withPool(cluster.url("postgres", user: role), readers: 4) { pool in
            try await pool.read { db in _ = try db.rows("SELECT 1") }
            try await OwnThread.run { _ = try cluster.sql("ALTER ROLE \(role) \(change)") }
            // The query keeps its connection busy, so that the others would be opened.
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<16 {
                    group.addTask { try await pool.read { db in _ = try db.rows("SELECT pg_sleep(0.02)") } }
                }
                try await group.waitForAll()
            }
            // Once none is open, the refusal is the answer.
            try await OwnThread.run {
                try cluster.sql("ALTER ROLE \(role) NOLOGIN")
                try cluster.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '\(role)'")
            }
            let error = await postgresError { try await pool.read { db in _ = try db.rows("SELECT 1") } }
            #expect(error?.kind == .wrongLogin || error?.kind == .connectionLost, "\(error as Any)")
        }
    }

    @Test func `a refused connection is tried again while the only open one is busy`() async throws {
        let cluster = try await Self.starting.value.cluster
        let role = "retried"
        try await OwnThread.run { _ = try cluster.sql("CREATE ROLE \(role) LOGIN") }
        try await withPool(cluster.url("postgres", user: role), readers: 2) { pool in
            let (isBusy, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let busy = Task {
                try await pool.read { _ in
                    isBusy.signal()
                    return mayEnd.wait(timeout: .now() + 50) == .success
                }
            }
            try await OwnThread.run {
                isBusy.wait()
                _ = try cluster.sql("ALTER ROLE \(role) NOLOGIN")
            }
            let waiting = Task { try await pool.read { try $0.first("SELECT 1") { try $0.int(0) } } }
            try await OwnThread.run {
                try Patience.wait(for: "the refusal") { pool.hosts.refusal?.kind == .wrongLogin }
                _ = try cluster.sql("ALTER ROLE \(role) LOGIN")
            }
            #expect(try await waiting.value == 1)
            mayEnd.signal()
            #expect(try await busy.value)
            #expect(pool.hosts.refusal == nil)
        }
    }

    @Test func `a password file that is missing for a while refuses the login, unless nothing was open before`()
        async throws
    {
        let server = try await Self.starting.value
        let folder = try TemporaryDirectory()
        let file = try folder.write("hunter4", to: "password")
        try await OwnThread.run { _ = try server.cluster.sql("CREATE ROLE filed LOGIN PASSWORD 'hunter4'") }
        let url = "postgres://filed@localhost:\(server.port)/postgres?sslmode=require&password_file=\(file)"
        try await withPool(url) { pool in
            let read = { try await pool.read { try $0.first("SELECT 1") { try $0.int(0) } } }
            #expect(try await read() == 1)
            try FileManager.default.removeItem(atPath: file)
            try await OwnThread.run {
                let end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = 'filed'"
                _ = try server.cluster.sql(end)
            }
            let error = await postgresError { _ = try await read() }
            #expect(error?.kind == .wrongLogin, "\(error as Any)")
            #expect("\(error as Any)".contains("correct the path of password_file"))
            let translated = error.map { StoreError.translated($0, path: "p") } as? StoreError
            #expect(translated?.isPassing == true)
            try await withPool(url) { other -> Void in
                await #expect(throws: PostgresAddressFault.self) { try await other.read { _ in } }
            }
            try folder.write("hunter4", to: "password")
            while true {
                do {
                    #expect(try await read() == 1)
                    break
                } catch let error as PostgresError where error.kind == .wrongLogin {}
            }
        }
    }

    @Test func `idle connections make room for work that has none`() async throws {
        let cluster = try await Self.starting.value.cluster
        try await OwnThread.run { _ = try cluster.sql("CREATE ROLE single LOGIN CONNECTION LIMIT 1") }
        try await withPool(cluster.url("postgres", user: "single"), readers: 2) { pool in
            for _ in 0..<3 {
                try await untilAccepted { try await pool.read { db in _ = try db.rows("SELECT 1") } }
                try await untilAccepted { try await pool.write { db in _ = try db.rows("SELECT 1") } }
            }
        }
    }

    /// Calls again as long as the server has no connection left, as callers with a back-off do.
    private func untilAccepted(_ body: () async throws -> Void) async throws {
        while true {
            do {
                return try await body()
            } catch let error as PostgresError where error.kind == .outOfConnections {
                await Task.yield()
            }
        }
    }

    @Test func `a server that is set to read only says so, and is passed over for one that is not`() async throws {
        let server = try await Self.starting.value
        let url = server.cluster.url("still")
        try await withPool(url) { pool in
            let error = await postgresError { try await pool.write { try $0.run("CREATE TABLE thing ()") } }
            #expect(error?.kind == .readOnly)
        }
        let picky = try await outcome(of: url + "&target_session_attrs=read-write") as? PostgresError
        #expect(picky?.kind == .readOnly && "\(picky as Any)".contains("name the primary"))
    }

    @Test func `the next host is taken when the first does not answer`() async throws {
        let server = try await Self.starting.value
        let closed = try ClosedPort()
        let hosts = "localhost:\(closed.number),localhost:\(server.port)"
        #expect(try await outcome(of: "postgres://anna:hunter2@\(hosts)/postgres") == nil)
        let nobody = try await outcome(of: "postgres://anna:hunter2@localhost:\(closed.number)/postgres")
        #expect("\(nobody as Any)".contains("refused") && (nobody as? PostgresError)?.isPassing == true)
    }
}
