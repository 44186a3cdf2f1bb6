import APNsSimulator
import Foundation
import TestSupport
import Testing

/// A store named by a URL, as commands meet it.
@Suite(.ownThread, .timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct `A store on PostgreSQL` {
    /// Asks for a password over TCP, and holds databases with which something is wrong.
    private struct Server {
        let cluster: PostgresCluster
        var port: Int { cluster.port }

        init() async throws {
            var options = PostgresCluster.Options()
            options.hasFsync = false
            options.hasPort = true
            options.access = ["host all all 127.0.0.1/32 scram-sha-256"]
            let cluster = try await PostgresCluster.own(options)
            self.cluster = cluster
            try await OwnThread.run {
                try cluster.sql("CREATE ROLE anna LOGIN PASSWORD 'hunter2'")
                for name in ["theirs", "newer", "still", "closed"] { try cluster.sql("CREATE DATABASE \(name)") }
                try cluster.sql("CREATE DATABASE annas OWNER anna")
                try cluster.sql("CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'")
                try cluster.sql("CREATE TABLE device (id int)", database: "theirs")
                try cluster.sql("ALTER DATABASE still SET default_transaction_read_only = on")
                try cluster.sql(
                    "CREATE TABLE fanfare_migration (version int, applied_at bigint); INSERT INTO fanfare_migration VALUES (99, 0)",
                    database: "newer")
            }
        }
    }

    private static let starting = Task { try await Server() }
    private static let password = "hunter2"

    /// A URL with SOCKET and PORT in it, and what a command that would make a store there says.
    private static let mistakes: [(url: String, status: Int32, says: String)] = [
        ("postgres://anna:hunter2@127.0.0.1:CLOSED/d", 69, "Connection refused; check that the server runs there"),
        ("postgres://anna:hunter2@/d?host=/nowhere", 69, "No such file or directory; check that the server runs there"),
        ("postgres://anna:hunter2wrong@127.0.0.1:PORT/annas", 78, "correct the user and password"),
        ("postgres://anna@127.0.0.1:PORT/annas", 78, "no password supplied; correct the user and password"),
        (
            "postgres://anna@127.0.0.1:PORT/annas?password_file=/nowhere/hunter", 78,
            "correct the path of password_file"
        ),
        ("postgres://anna:hunter2@127.0.0.1:PORT/annas?sslmode=require", 78, "turn TLS on there"),
        ("postgres://postgres@/none?SOCKET", 78, "create it with `createdb`"),
        ("postgres://postgres@/theirs?SOCKET", 78, "tables of another program (device); name an empty database"),
        ("postgres://postgres@/newer?SOCKET", 78, "a newer Fanfare (store version 99"),
        ("postgres://postgres@/still?SOCKET", 78, "it is set to read only; name the primary"),
        ("postgres://postgres@/latin?SOCKET", 78, "createdb --encoding=UTF8"),
        ("postgres://anna@/closed?SOCKET", 78, "GRANT it CREATE ON SCHEMA public"),
        ("mysql://anna:hunter2@h/d", 78, "does not begin with postgres://; write postgres://user@host:5432/database"),
        ("postgres:/anna:hunter2@h/d", 78, "does not begin with postgres://"),
        ("host=h dbname=d password=hunter2", 78, "does not begin with postgres://"),
        ("postgres://anna:hunter2@h/d?sslmod=1", 78, "unknown option \"sslmod\""),
        ("postgres://anna:hunt/hunter2@h/d", 78, "as %40 %2F"),
        ("postgres://anna:hunter2@h", 78, "names no database"),
    ]

    @Test(arguments: mistakes.indices)
    func `a URL that leads to none is said in one line, with what to do and no password`(index: Int) async throws {
        let (template, status, words) = Self.mistakes[index]
        let server = try await Self.starting.value
        try await OwnThread.run {
            let closed = try ClosedPort()
            let url = template.replacing("SOCKET", with: "host=\(server.cluster.folder)&port=PORT")
                .replacing("PORT", with: "\(server.port)").replacing("CLOSED", with: "\(closed.number)")
            let place = try Installation(devices: 1, store: url)
            for result in [
                try place.fanfare("devices", "import", "devices.csv"),
                try Program.run(
                    ["devices", "import", "devices.csv"], in: place.folder, environment: ["FANFARE_STORE": url]),
            ] {
                #expect(result.status == status, "\(result.errors)")
                #expect(
                    result.errors.contains(words) && result.errors.split(separator: "\n").count == 1, "\(result.errors)"
                )
                #expect(!(result.errors + result.output).contains(Self.password), "\(result.errors)")
            }
            let doctor = try place.fanfare("doctor")
            // Where there is none yet it does not ask whether one could be made.
            #expect(!doctor.output.contains("ok       store") && !doctor.output.contains(Self.password))
        }
    }

    @Test func `nothing is made where one is refused`() async throws {
        let server = try await Self.starting.value
        try await OwnThread.run {
            let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            for (database, count) in [("theirs", "1"), ("newer", "1"), ("still", "0"), ("latin", "0"), ("closed", "0")]
            {
                let found = try server.cluster.sql(tables, database: database)
                #expect(found == count, "\(database)")
            }
        }
    }

    @Test func `takes its password from the URL, a file or a service's copy of it, and shows it nowhere`() async throws
    {
        let server = try await Self.starting.value
        try await OwnThread.run {
            let plain = "postgres://anna@127.0.0.1:\(server.port)/annas"
            let place = try Installation(
                devices: 3, store: "postgres://anna:\(Self.password)@127.0.0.1:\(server.port)/annas")
            try place.importDevices()
            #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
            try place.folder.write(Self.password + "\n", to: "store.password")
            let filed = ["FANFARE_STORE": "\(plain)?password_file=\(place.folder.file("store.password"))"]
            try place.folder.write("127.0.0.1:\(server.port):annas:anna:\(Self.password)\n", to: "pgpass")
            chmod(place.folder.file("pgpass"), 0o600)
            try place.folder.write(Self.password, to: "credentials/keys_other.password")
            let given: [[String: String]] = [
                [:], filed, ["FANFARE_STORE": plain, "PGPASSFILE": place.folder.file("pgpass")],
                [
                    "FANFARE_STORE": "\(plain)?password_file=/etc/fanfare/keys/other.password",
                    "CREDENTIALS_DIRECTORY": place.folder.file("credentials"),
                ],
            ]
            let commands = [
                ["status"], ["doctor"], ["verify"], ["verify", "--json"], ["audit"], ["backup", "b"], ["validate"],
                ["devices", "show"], ["report", "1"],
            ]
            for environment in given {
                for words in commands {
                    let result = try Program.run(words, in: place.folder, environment: environment)
                    #expect(result.status == (words[0] == "backup" ? 78 : 0), "\(words) \(result.errors)")
                    #expect(!(result.output + result.errors).contains(Self.password), "\(words)")
                }
            }
            let named = try place.fanfare("verify", "--store", "postgres://anna:\(Self.password)@127.0.0.1:1/annas")
            #expect(named.status == 69 && !named.errors.contains(Self.password), "\(named.errors)")
            let told = try place.fanfare("doctor").output
            #expect(told.contains("which holds the store's password, can be read by every user"), "\(told)")
        }
    }

    @Test func `is kept by a daemon that is told another one, and shown without its password`() async throws {
        let cluster = try await PostgresCluster.shared
        let store = cluster.url(try await cluster.makeDatabase(), user: "postgres:\(Self.password)")
        try await OwnThread.run {
            let place = try Installation(devices: 2, store: store)
            try place.importDevices()
            let daemon = try RunningProgram(["serve"], in: place.folder)
            try daemon.wait { daemon.errors.contains("files read") }
            try place.folder.write(
                try place.folder.read("fanfare.yaml").replacing(store, with: "other.sqlite"), to: "fanfare.yaml")
            daemon.signal(SIGHUP)
            try daemon.wait { daemon.errors.contains("a changed store needs a restart: systemctl restart fanfare") }
            daemon.signal(SIGTERM)
            let stopped = try daemon.finish()
            #expect(stopped.status == 0 && !stopped.errors.contains(Self.password), "\(stopped.errors)")
        }
    }

    @Test func `keeps what is this machine's own in a folder of its own, for its owner's eyes`() async throws {
        let store = try await StoreKind.postgres.address()
        try await OwnThread.run {
            let place = try Installation(devices: 3, store: store)
            try place.importDevices()
            #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
            let state = place.folder.file("state/fanfare")
            let names = try FileManager.default.contentsOfDirectory(atPath: state).sorted()
            // And which store the folder belongs to.
            #expect(names.count == 2 && names.last?.wholeMatch(of: /store-[0-9a-f]{16}/) != nil, "\(names)")
            #expect(names.first?.wholeMatch(of: /senders-[0-9a-f]{8}/) != nil, "\(names)")
            for path in [place.folder.file("state"), state, "\(state)/\(names.first ?? "")"] {
                let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
                #expect(mode == 0o700, "\(path)")
            }
            // As systemd names it, where there is one.
            let served = try Program.run(
                ["run", "new-podcast", "--occurrence", "b", "--yes"] + Installation.words, in: place.folder,
                environment: ["STATE_DIRECTORY": place.folder.file("service") + ":/nowhere"])
            #expect(served.status == 0, "\(served.errors)")
            #expect(FileManager.default.fileExists(atPath: place.folder.file("service/\(names.first ?? "")/lock")))
        }
    }

    /// Returns in the middle of a run whose database belongs to a new role.
    private static func slowRun(
        as role: String, _ database: String, _ cluster: PostgresCluster
    ) throws -> (Installation, RunningProgram) {
        try cluster.sql("CREATE ROLE \(role) LOGIN")
        try cluster.sql("ALTER DATABASE \(database) OWNER TO \(role)")
        let place = try Installation.slow(store: cluster.url(database, user: role))
        return (place, try place.startSlowRun())
    }

    @Test func `is not asked by a stop, also where this machine has sent from another one`() async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await OwnThread.run {
            let role = "sender_of_\(database)"
            let (place, run) = try Self.slowRun(as: role, database, cluster)
            let state = URL(fileURLWithPath: place.folder.file("state/fanfare"))
            let files = FileManager.default
            try files.createDirectory(at: state.appending(path: "senders-00000001"), withIntermediateDirectories: false)
            let names = try files.contentsOfDirectory(atPath: state.path)
            let note = state.appending(path: try #require(names.first { $0.hasPrefix("store-") }))
            try cluster.sql("ALTER ROLE \(role) NOLOGIN")
            let aside = state.appending(path: "aside")
            try files.moveItem(at: note, to: aside)
            let unknown = try place.fanfare("stop", "--all")
            #expect(unknown.status == 78 && unknown.errors.contains("NOTHING IS STOPPED"), "\(unknown.errors)")
            try files.moveItem(at: aside, to: note)
            let stopped = try place.fanfare("stop", "--all")
            #expect(stopped.status == 0, "\(stopped.errors)")
            // A run that lost its connections meanwhile records its end over new ones.
            try cluster.sql("ALTER ROLE \(role) LOGIN")
            let ended = try run.finish()
            #expect(ended.status == 76, "\(ended.errors)")
            #expect(place.simulator.counts().accepted < Installation.slowDevices)
        }
    }

    @Test func `that does not record a stop leaves other machines sending, which the stop says`() async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await OwnThread.run {
            let role = "stopper_of_\(database)"
            try cluster.sql("CREATE ROLE \(role) LOGIN")
            try cluster.sql("ALTER DATABASE \(database) OWNER TO \(role)")
            let place = try Installation(devices: 1, store: cluster.url(database, user: role))
            try place.importDevices()
            #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
            try cluster.sql("ALTER ROLE \(role) NOLOGIN")
            let stopped = try place.fanfare("stop", "--all", "--reason", "wrong text", "--json")
            #expect(stopped.status == 75, "\(stopped.errors)")
            #expect(stopped.errors.hasPrefix("error: OTHER MACHINES ARE NOT STOPPED: "), "\(stopped.errors)")
            #expect(stopped.output.contains(#""recorded" : false"#), "\(stopped.output)")
            let path = try place.fanfare("stop", "--where").output.trimmingCharacters(in: .newlines)
            #expect(FileManager.default.fileExists(atPath: path))
            try cluster.sql("ALTER ROLE \(role) LOGIN")
            let again = try place.fanfare("stop", "--all", "--reason", "wrong text", "--json")
            #expect(again.status == 0 && again.output.contains(#""recorded" : true"#), "\(again.errors)")
        }
    }

    @Test func `records a stop over a slow network, too`() async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await OwnThread.run {
            let place = try Installation(devices: 1, store: cluster.url(database))
            try place.importDevices()
            #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
            let far = try DelayingProxy(to: .cluster(folder: cluster.folder), roundTrip: .milliseconds(50))
            let stopped = try place.fanfare(
                "stop", "--all", "--reason", "wrong text", "--json", environment: ["FANFARE_STORE": far.url(database)])
            #expect(stopped.status == 0, "\(stopped.errors)")
            #expect(stopped.output.contains(#""recorded" : true"#), "\(stopped.output)")
        }
    }

    /// As after a change of the password: connections that are open stay, new ones are refused.
    @Test func `that refuses the login in the middle of a run is waited for`() async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await OwnThread.run {
            let role = "rotated_\(database)"
            let (place, run) = try Self.slowRun(as: role, database, cluster)
            try cluster.sql("ALTER ROLE \(role) NOLOGIN")
            try cluster.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '\(role)'")
            try run.wait { run.errors.contains("the server of the store refuses the user or its password") }
            try cluster.sql("ALTER ROLE \(role) LOGIN")
            place.simulator.setFaults([])
            let ended = try run.finish()
            #expect(ended.status == 0, "\(ended.errors)")
            try place.expectOnceEach()
        }
    }

    @Test func `lets a second process send along, and nobody is sent to twice`() async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await OwnThread.run {
            let place = try Installation.slow(store: cluster.url(database))
            let first = try place.startSlowRun()
            let second = try place.startAlong(cluster, database)
            place.simulator.setFaults([])
            let ended = try second.finish()
            #expect(ended.status == 0, "\(ended.errors)")
            #expect(try first.finish().status == 0)
            try place.expectOnceEach()
        }
    }

    @Test func `is copied by pg_dump, which the refused backup says`() async throws {
        let store = try await StoreKind.postgres.address()
        try await OwnThread.run {
            let place = try Installation(devices: 1, store: store)
            try place.importDevices()
            let refused = try place.fanfare("backup", "copy.dump")
            #expect(refused.status == 78 && refused.errors.split(separator: "\n").count == 1, "\(refused.errors)")
            let command = try #require(refused.errors.firstRange(of: "pg_dump "))
            let dump = try Program.run(
                ["-c", String(refused.errors[command.lowerBound...])], in: place.folder,
                program: URL(fileURLWithPath: "/bin/sh"))
            #expect(dump.status == 0, "\(dump.errors)")
            #expect(FileManager.default.fileExists(atPath: place.folder.file("copy.dump")))
        }
    }

    @Test func `is made by an import alone, and counted as a new one by a dry run`() async throws {
        let store = try await StoreKind.postgres.address()
        try await OwnThread.run {
            let place = try Installation(devices: 4, store: store)
            for words in [["status"], ["verify"], ["run", "new-podcast", "--yes"], ["serve"]] {
                let result = try Program.run(words, in: place.folder)
                #expect(result.status == 78 && result.errors.contains("there is no store at postgres://"), "\(words)")
                #expect(result.errors.contains("correct the URL"))
            }
            #expect(try place.fanfare("doctor").output.contains("there is no store yet at postgres://"))
            let dry = try place.fanfare("devices", "import", "devices.csv", "--dry-run")
            #expect(dry.status == 0 && dry.output.contains("4 new"), "\(dry.errors)")
            #expect(try place.fanfare("status").status == 78)
            try place.importDevices()
            #expect(try place.fanfare("status").status == 0)
        }
    }
}
