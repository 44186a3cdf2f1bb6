import APNsSimulator
import Foundation
import TestSupport
import Testing

/// Servers that are not as they should be, as a person meets them: one line, an exit code that says whose turn it is, and
/// nothing made by half.
@Suite(.ownThread, .timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct `A PostgreSQL server` {
    private static let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"

    private func expect(
        _ result: Program.Result, _ status: Int32, _ words: String, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(result.status == status, "\(result.errors)", sourceLocation: sourceLocation)
        #expect(
            result.errors.contains(words) && result.errors.split(separator: "\n").count == 1, "\(result.errors)",
            sourceLocation: sourceLocation)
        #expect(!(result.errors + result.output).contains("hunter2"), sourceLocation: sourceLocation)
    }

    private func importInto(_ url: String, _ place: Installation) throws -> Program.Result {
        try place.fanfare("devices", "import", "devices.csv", environment: ["FANFARE_STORE": url])
    }

    @Test func `that asks for TLS is believed only with its certificate, and never without TLS`() async throws {
        let folder = try TemporaryDirectory()
        for name in ["server", "other"] {
            try OpenSSLCommand.run(
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout",
                folder.file("\(name).key"), "-out", folder.file("\(name).pem"))
        }
        try PostgresCluster.give(folder.file("server.key"))
        var options = PostgresCluster.Options()
        options.hasFsync = false
        options.hasPort = true
        options.settings = [
            "ssl": "on", "ssl_cert_file": "'\(folder.file("server.pem"))'",
            "ssl_key_file": "'\(folder.file("server.key"))'",
        ]
        options.access = ["hostssl all all 127.0.0.1/32 scram-sha-256"]
        let cluster = try await PostgresCluster.own(options)
        try await OwnThread.run {
            try cluster.sql("CREATE ROLE anna LOGIN PASSWORD 'hunter2'")
            try cluster.sql("CREATE DATABASE annas OWNER anna")
            let place = try Installation(devices: 2)
            let login = "postgres://anna:hunter2@"
            let path = ":\(cluster.port)/annas"
            let root = folder.file("server.pem")
            // Who it is, is asked by default of every server that is not on this machine, as the store's own tests show.
            for url in [
                "\(login)localhost\(path)?sslmode=verify-full",
                "\(login)localhost\(path)?sslmode=verify-full&sslrootcert=\(folder.file("other.pem"))",
                "\(login)localhost\(path)?sslmode=verify-full&sslrootcert=/nowhere",
                "\(login)127.0.0.1\(path)?sslmode=verify-full&sslrootcert=\(root)",
            ] {
                expect(try importInto(url, place), 78, "?sslrootcert=FILE, and use the host name in its certificate")
            }
            expect(try importInto("\(login)localhost\(path)?sslmode=disable", place), 78, "no encryption")
            let found = try cluster.sql(Self.tables, database: "annas")
            #expect(found == "0")
            let made = try importInto("\(login)localhost\(path)?sslmode=verify-full&sslrootcert=\(root)", place)
            #expect(made.status == 0, "\(made.errors)")
        }
    }

    @Test func `that is too old is left alone`() async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await OwnThread.run {
            let version = try cluster.sql("SHOW server_version").prefix(3)
            let old = try CuttingProxy(
                to: cluster, falsehood: ("server_version\0\(version)", "server_version\014."))
            let place = try Installation(devices: 2)
            for words in [["devices", "import", "devices.csv"], ["status"], ["serve"]] {
                let result = try Program.run(
                    words, in: place.folder, environment: ["FANFARE_STORE": old.url(database)])
                expect(result, 78, "is PostgreSQL 14; Fanfare needs version 15 or later")
            }
            let doctor = try place.fanfare("doctor", environment: ["FANFARE_STORE": old.url(database)])
            #expect(doctor.status != 0 && doctor.output.contains("needs version 15"), "\(doctor.output)")
            let found = try cluster.sql(Self.tables, database: database)
            #expect(found == "0")
        }
    }

    @Test func `that only follows another one is read, and nothing is sent from it`() async throws {
        let primary = try await PostgresCluster.own()
        let replica = try await PostgresCluster.replica(of: primary)
        try await OwnThread.run {
            try primary.sql("CREATE DATABASE store")
            try primary.sql("CREATE DATABASE none")
            let place = try Installation(devices: 2, store: primary.url("store"))
            try place.importDevices()
            #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
            func arrived() throws -> Bool {
                let here = try primary.sql("SELECT pg_current_wal_lsn()")
                return try replica.sql("SELECT pg_last_wal_replay_lsn() >= '\(here)'::pg_lsn") == "t"
            }
            try Patience.wait(for: "the replica, which does not follow", until: arrived)
            let there = ["FANFARE_STORE": replica.url("store")]
            for words in [["status"], ["report", "1"], ["verify"], ["devices", "show"]] {
                let result = try Program.run(words, in: place.folder, environment: there)
                #expect(result.status == 0, "\(words) \(result.errors)")
            }
            for words in [["run", "new-podcast", "--yes"], ["serve"], ["devices", "import", "devices.csv"]] {
                expect(try Program.run(words, in: place.folder, environment: there), 69, "name the primary")
            }
            expect(try importInto(replica.url("none"), place), 69, "name the primary")
            // As during a failover: of several hosts, none is the primary yet.
            let several = "postgres://postgres@/store?host=\(replica.folder),\(replica.folder)"
            expect(try Program.run(["serve"], in: place.folder, environment: ["FANFARE_STORE": several]), 69, "primary")
            #expect(place.simulator.counts().accepted == 2)
            // Hot standby off is what a server says too while it starts.
            try replica.stop()
            try replica.set("hot_standby", "off")
            try replica.start()
            expect(try importInto(replica.url("store"), place), 69, "try again when it is up")
        }
    }

    /// As PgBouncer does; whether we give up prepared statements when they are missed, or are told to make none.
    @Test(arguments: ["", "&prepare=off"])
    func `behind a pooler that gives each transaction another connection is as good as without`(
        option: String
    ) async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await OwnThread.run {
            let pooler = try TransactionPooler(to: cluster)
            let place = try Installation.slow(store: pooler.url(database) + option)
            let run = try place.startSlowRun()
            let second = try place.startAlong(cluster, database)
            place.simulator.setFaults([])
            for process in [run, second] {
                let ended = try process.finish()
                #expect(ended.status == 0, "\(ended.errors)")
            }
            try place.expectOnceEach()
            let daemon = try RunningProgram(["serve"], in: place.folder)
            try daemon.wait { daemon.errors.contains("files read") }
            let next = try place.fanfare("run", "slow", "--occurrence", "b", "--yes")
            #expect(next.status == 0, "\(next.errors)")
            daemon.signal(SIGTERM)
            #expect(try daemon.finish().status == 0)
            #expect(place.simulator.counts().accepted == 2 * Installation.slowDevices)
            let verified = try place.fanfare("verify")
            #expect(verified.status == 0, "\(verified.output)\(verified.errors)")
            #expect(pooler.transactions > 50)
        }
    }

    @Test func `that is shutting down is to be tried again`() async throws {
        let cluster = try await PostgresCluster.own()
        try await OwnThread.run {
            let place = try Installation(devices: 2)
            let session = try RunningProgram(
                ["-c", "echo \"SELECT 1; SELECT pg_sleep(60)\" | psql -X -q -A -t '\(cluster.url("postgres"))'"],
                in: place.folder, program: URL(fileURLWithPath: "/bin/sh"))
            try session.wait { session.output.contains("1") }
            try cluster.beginStop()
            expect(try importInto(cluster.url("postgres"), place), 69, "try again when it is up")
            session.signal(SIGKILL)
            try cluster.stop()
            expect(try importInto(cluster.url("postgres"), place), 69, "check that the server runs there")
            try cluster.start()
            let found = try cluster.sql(Self.tables)
            #expect(found == "0")
            #expect(try importInto(cluster.url("postgres"), place).status == 0)
        }
    }
}
