import Foundation
import Synchronization
package import Testing

/// A PostgreSQL server of the tests' own in a temporary folder, reached over a Unix socket. A watcher ends it and removes
/// the folder when it is no longer needed, or when this process is gone, however it went.
///
/// Its calls wait for processes: to be made on a thread of its own (``OwnThread``).
package final class PostgresCluster: Sendable {
    package struct Options: Sendable {
        /// What of a server lies on a ``SmallDisk``.
        package enum Small: String, Sendable { case wal, tables }

        /// Off, it is faster, and a power failure might cost it everything.
        package var hasFsync = true
        /// A loopback port besides the socket.
        package var port: Int?
        /// Lines of postgresql.conf.
        package var settings: [String: String] = [:]
        /// Lines of pg_hba.conf that come before "everybody over the socket".
        package var access: [String] = []
        package var small: Small?

        package init() {}
    }

    /// `.ci/run` installs a server and says so: one that is missing then fails the tests.
    package static let isAvailable =
        ProcessInfo.processInfo.environment["POSTGRES_TESTS"] != nil || PostgresCommand.folder != nil
    package static let missing: Comment = "no PostgreSQL server is installed; `.ci/run` does it: left out"

    package let folder: String
    package let options: Options
    package let disk: SmallDisk?
    private let watcher: Watcher

    private static let starting = Task {
        try await OwnThread.run {
            var options = Options()
            options.hasFsync = false
            return try PostgresCluster(options)
        }
    }

    /// One for all suites of the process, started for the first that asks; each makes a database of its own in it.
    package static var shared: PostgresCluster {
        get async throws { try await starting.value }
    }

    /// For a test that stops, breaks or sets up the server.
    package static func own(_ options: Options = Options()) async throws -> PostgresCluster {
        try await OwnThread.run { try PostgresCluster(options) }
    }

    /// A streaming replica, which takes in what `primary` writes and can be promoted.
    package static func replica(of primary: PostgresCluster) async throws -> PostgresCluster {
        try await OwnThread.run { try PostgresCluster(Options(), replicaOf: primary) }
    }

    private init(_ options: Options, replicaOf primary: PostgresCluster? = nil) throws {
        self.options = options
        // Short: the path of a socket has about 100 bytes.
        folder =
            FileManager.default.temporaryDirectory.appending(path: "fanfare-pg-\(UUID().uuidString.prefix(13))").path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
        watcher = try Watcher(folder)
        if let owner = PostgresCommand.owner {
            try PostgresCommand.run("/usr/bin/env", ["chown", owner, folder])
        }
        let isSmall = options.small != nil
        disk = isSmall ? try SmallDisk(at: "\(folder)/disk", megabytes: options.small == .wal ? 24 : 48) : nil
        if let primary {
            // Also writes down whom it follows, in the file that configure() leaves alone.
            let port = "\(primary.options.port ?? Self.socketPort)"
            try PostgresCommand.run(
                "pg_basebackup",
                asOwner: [
                    "-D", data, "-h", primary.folder, "-p", port, "-U", "postgres", "-R", "-c", "fast", "--no-sync",
                ])
        } else {
            try PostgresCommand.run(
                "initdb",
                asOwner: [
                    "-D", data, "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8",
                ] + (options.small == .wal ? ["-X", "\(folder)/disk/wal", "--wal-segsize=1"] : []),
                within: disk?.words ?? [])
        }
        try configure()
        try start()
        if options.small == .tables, let tables = disk?.outside("tables") {
            try FileManager.default.createDirectory(atPath: tables, withIntermediateDirectories: false)
            try Self.give(tables)
            try sql("CREATE TABLESPACE small LOCATION '\(folder)/disk/tables'")
        }
    }

    package var data: String { "\(folder)/data" }

    /// Makes a file of a test's the server's own, which asks that of a key.
    package static func give(_ path: String) throws {
        guard let owner = PostgresCommand.owner else { return }
        try PostgresCommand.run("/usr/bin/env", ["chown", owner, path])
    }

    /// For a database, as the cluster's administrator.
    package func url(_ database: String, user: String = "postgres") -> String {
        "postgres://\(user)@/\(database)?host=\(folder)&port=\(options.port ?? Self.socketPort)"
    }

    package func start() throws {
        try PostgresCommand.runStarter(
            "pg_ctl", asOwner: ["-D", data, "-w", "-t", "60", "-l", "\(folder)/log", "start"],
            within: disk?.words ?? [], log: "\(folder)/start")
    }

    /// Behind the name of a database that is made.
    package var place: String { options.small == .tables ? "TABLESPACE small" : "" }

    /// Whether its first process is there; it ends by itself when it cannot recover.
    package var isRunning: Bool { (try? processID).map(Self.isAlive) ?? false }

    /// Ends it as an administrator does: sessions are cut, everything is on disk.
    package func stop() throws {
        try PostgresCommand.run("pg_ctl", asOwner: ["-D", data, "-w", "-t", "60", "-m", "fast", "stop"])
    }

    /// Takes no new session, and ends with the last one.
    package func beginStop() throws {
        try PostgresCommand.run("pg_ctl", asOwner: ["-D", data, "-W", "-m", "smart", "stop"])
    }

    /// A setting of the next start.
    package func set(_ name: String, _ value: String) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: "\(data)/postgresql.conf"))
        try file.seekToEnd()
        try file.write(contentsOf: Data("\(name) = \(value)\n".utf8))
        try file.close()
    }

    /// Makes a replica a server that may be written to.
    package func promote() throws {
        try PostgresCommand.run("pg_ctl", asOwner: ["-D", data, "-w", "-t", "60", "promote"])
    }

    /// A replica takes in nothing more of what its primary writes.
    package func stopReceiving() throws {
        try sql("ALTER SYSTEM SET primary_conninfo = ''")
        try sql("SELECT pg_reload_conf()")
        for _ in 0..<Self.recoveryLooksMax {
            if try sql("SELECT count(*) FROM pg_stat_wal_receiver") == "0" { return }
            usleep(10_000)
        }
    }

    /// `kill -9` of every process of it.
    package func crash() throws {
        let pid = try processID
        let children = try String(contentsOfFile: "/proc/\(pid)/task/\(pid)/children", encoding: .utf8)
            .split(separator: " ").compactMap { pid_t($0) }
        for process in [pid] + children { kill(process, SIGKILL) }
        for process in [pid] + children {
            while kill(process, 0) == 0, Self.isAlive(process) { usleep(2_000) }
        }
        // Whoever is slow to ask for the dead process makes it look alive to the server that starts next.
        for file in ["\(data)/postmaster.pid", "\(folder)/.s.PGSQL.\(options.port ?? Self.socketPort).lock"] {
            try FileManager.default.removeItem(atPath: file)
        }
    }

    /// A killed process stays as a zombie until somebody asks for it.
    private static func isAlive(_ process: pid_t) -> Bool {
        let facts = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
        return !facts.isEmpty && !facts.contains(") Z ")
    }

    private var processID: pid_t {
        get throws {
            let text = try String(contentsOfFile: "\(data)/postmaster.pid", encoding: .utf8)
            return pid_t(text.prefix { $0 != "\n" }) ?? 0
        }
    }

    /// SQL by PostgreSQL's own client, as administrator; its rows, unaligned. Of a server that has just crashed it waits for the
    /// end of its recovery.
    @discardableResult
    package func sql(_ text: String, database: String = "postgres") throws -> String {
        let words = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url(database), "-c", text]
        for _ in 0..<Self.recoveryLooksMax {
            do {
                return try PostgresCommand.run("\(PostgresCommand.folder ?? "")/psql", words)
                    .trimmingCharacters(in: .newlines)
            } catch let failed as PostgresCommand.Failed
                where Self.recoveryMessages.contains(where: failed.output.contains)
            {
                usleep(100_000)
            }
        }
        throw PostgresCommand.Failed(arguments: words, output: "the server has been in recovery mode for a minute")
    }

    private static let recoveryLooksMax = 600

    /// What PostgreSQL tells a client while it recovers from a crash.
    private static let recoveryMessages = [
        " is in recovery mode", " is not yet accepting connections", " is starting up",
        // Others have taken all that it has, for a while.
        "out of shared memory",
    ]

    /// An empty database of a name of its own, or a copy of another one that nobody uses.
    package func makeDatabase(template: String = "template0") async throws -> String {
        let name = "test_\(Self.databases.add(1, ordering: .relaxed).newValue)"
        try await OwnThread.run { _ = try self.sql("CREATE DATABASE \(name) TEMPLATE \(template)") }
        return name
    }

    private static let databases = Atomic(0)
    /// The name of the socket has it, and each cluster has a folder of its own.
    private static let socketPort = 5432

    private func configure() throws {
        var settings = [
            "unix_socket_directories": "'\(folder)'", "listen_addresses": options.port == nil ? "''" : "'127.0.0.1'",
            "port": "\(options.port ?? Self.socketPort)", "max_connections": "400", "shared_buffers": "'64MB'",
            "fsync": options.hasFsync ? "on" : "off", "full_page_writes": options.hasFsync ? "on" : "off",
            "max_prepared_transactions": "0", "logging_collector": "off",
        ]
        if options.small == .wal { settings.merge(["min_wal_size": "'2MB'", "max_wal_size": "'4MB'"]) { $1 } }
        settings.merge(options.settings) { $1 }
        try Self.write(settings.sorted { $0.key < $1.key }.map { "\($0) = \($1)" }, to: "\(data)/postgresql.conf")
        try Self.write(
            options.access + ["local all all trust", "local replication all trust"], to: "\(data)/pg_hba.conf")
    }

    /// Into a file that is there: it stays its owner's.
    private static func write(_ lines: [String], to path: String) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.truncate(atOffset: 0)
        try file.write(contentsOf: Data((lines.joined(separator: "\n") + "\n").utf8))
        try file.close()
    }
}

/// A shell that waits for the end of a socket whose other end only this process has, and then tidies up: it needs nobody to
/// tell it, so that a killed test process leaves nothing behind. In a session of its own, where no Ctrl-C reaches it.
private final class Watcher: Sendable {
    private static let script = """
        trap '' INT TERM HUP
        cat >/dev/null
        pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
        if [ -n "$pid" ]; then
            kill -QUIT "$pid" 2>/dev/null
            tries=0
            while kill -0 "$pid" 2>/dev/null && [ $tries -lt 100 ]; do sleep 0.05; tries=$((tries + 1)); done
            kill -KILL "$pid" 2>/dev/null
        fi
        tries=0
        while [ -e "$1" ] && [ $tries -lt 1200 ]; do rm -rf "$1"; [ -e "$1" ] && sleep 0.05; tries=$((tries + 1)); done
        """

    private let writeEnd: Int32

    init(_ folder: String) throws {
        var ends: [Int32] = [0, 0]
        // Closed in every other process that this one starts, from the beginning.
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
        }
        writeEnd = ends[1]
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["setsid", "sh", "-c", Self.script, "watcher", folder]
        process.currentDirectoryURL = URL(fileURLWithPath: "/")
        process.standardInput = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    deinit { close(writeEnd) }
}
