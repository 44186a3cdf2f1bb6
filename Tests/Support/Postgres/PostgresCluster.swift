import Foundation
import Synchronization
package import Testing

/// A PostgreSQL server that belongs to the tests, in a temporary folder and reached over a Unix socket. A watcher stops
/// the server and removes the folder when the server is no longer needed, or when this process has exited.
///
/// Its methods wait for processes, so call them on a separate thread (``OwnThread``).
package final class PostgresCluster: Sendable {
    package struct Options: Sendable {
        /// The part of a server that is on a ``SmallDisk``.
        package enum Small: String, Sendable { case wal, tables }

        /// Whether the server waits for the disk. Without this it is faster, and a power failure may destroy its data.
        package var hasFsync = true
        /// Whether the server listens on a loopback port in addition to the socket, see ``PostgresCluster/port``.
        package var hasPort = false
        /// Settings in postgresql.conf.
        package var settings: [String: String] = [:]
        /// Lines of pg_hba.conf before the line that admits all users over the socket.
        package var access: [String] = []
        package var small: Small?

        package init() {}
    }

    /// Whether the tests may use a server. `.ci/run` installs one and sets `POSTGRES_TESTS`, so that a missing server
    /// fails the tests.
    package static let isAvailable =
        ProcessInfo.processInfo.environment["POSTGRES_TESTS"] != nil || PostgresCommand.folder != nil
    package static let missing: Comment = "no PostgreSQL server is installed; `.ci/run` does it: left out"

    package let folder: String
    package let options: Options
    package let disk: SmallDisk?
    private let watcher: Watcher
    private let chosenPort = Atomic(socketPort)

    /// The port in the socket's name, on which the server also listens if its options say so.
    package var port: Int { chosenPort.load(ordering: .relaxed) }

    private static let starting = Task {
        try await OwnThread.run {
            var options = Options()
            options.hasFsync = false
            return try PostgresCluster(options)
        }
    }

    /// The server that all suites of the process share. The first use starts it. Each suite creates its own database.
    package static var shared: PostgresCluster {
        get async throws { try await starting.value }
    }

    /// Creates a server for a test that stops, breaks or configures it.
    package static func own(_ options: Options = Options()) async throws -> PostgresCluster {
        try await OwnThread.run { try PostgresCluster(options) }
    }

    /// Creates a streaming replica of `primary`, which can be promoted.
    package static func replica(of primary: PostgresCluster) async throws -> PostgresCluster {
        try await OwnThread.run { try PostgresCluster(Options(), replicaOf: primary) }
    }

    private init(_ options: Options, replicaOf primary: PostgresCluster? = nil) throws {
        self.options = options
        // The name is short, because the path of a socket has at most about 100 bytes.
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
            // pg_basebackup also records the primary, in a file that configure() does not change.
            try PostgresCommand.run(
                "pg_basebackup",
                asOwner: [
                    "-D", data, "-h", primary.folder, "-p", "\(primary.port)", "-U", "postgres", "-R", "-c", "fast",
                    "--no-sync",
                ])
        } else {
            try PostgresCommand.run(
                "initdb",
                asOwner: [
                    "-D", data, "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8",
                ] + (options.small == .wal ? ["-X", "\(folder)/disk/wal", "--wal-segsize=1"] : []),
                within: disk?.words ?? [])
        }
        try startFirst()
        if options.small == .tables, let tables = disk?.outside("tables") {
            try FileManager.default.createDirectory(atPath: tables, withIntermediateDirectories: false)
            try Self.give(tables)
            try sql("CREATE TABLESPACE small LOCATION '\(folder)/disk/tables'")
        }
    }

    package var data: String { "\(folder)/data" }

    /// Makes the server's user the owner of a test's file, which the server requires of a key.
    package static func give(_ path: String) throws {
        guard let owner = PostgresCommand.owner else { return }
        try PostgresCommand.run("/usr/bin/env", ["chown", owner, path])
    }

    /// Returns the URL of a database, by default for the administrator.
    package func url(_ database: String, user: String = "postgres") -> String {
        "postgres://\(user)@/\(database)?host=\(folder)&port=\(port)"
    }

    /// The maximum number of ports that are tried.
    private static let portsMax = 10

    /// Configures and starts the new server. Another process may use its port between the choice and the start. The
    /// server then gets another port.
    private func startFirst() throws {
        var tries = 0
        while true {
            if options.hasPort { chosenPort.store(try ClosedPort().number, ordering: .relaxed) }
            try configure()
            do { return try start() } catch {
                tries += 1
                let log = (try? String(contentsOfFile: "\(folder)/log", encoding: .utf8)) ?? ""
                guard options.hasPort, tries < Self.portsMax, log.contains("Address already in use") else {
                    throw error
                }
            }
        }
    }

    package func start() throws {
        try PostgresCommand.runStarter(
            "pg_ctl", asOwner: ["-D", data, "-w", "-t", "60", "-l", "\(folder)/log", "start"],
            within: disk?.words ?? [], log: "\(folder)/start")
    }

    /// The clause that follows the name in `CREATE DATABASE`.
    package var place: String { options.small == .tables ? "TABLESPACE small" : "" }

    /// Whether the server's first process exists. It exits if it cannot recover.
    package var isRunning: Bool { (try? processID).map(Self.isAlive) ?? false }

    /// Stops the server as an administrator does. It disconnects all sessions, and writes all data to disk.
    package func stop() throws {
        try PostgresCommand.run("pg_ctl", asOwner: ["-D", data, "-w", "-t", "60", "-m", "fast", "stop"])
    }

    /// Starts to stop the server. It accepts no new session, and exits after the last one.
    package func beginStop() throws {
        try PostgresCommand.run("pg_ctl", asOwner: ["-D", data, "-W", "-m", "smart", "stop"])
    }

    /// Changes a setting for the next start.
    package func set(_ name: String, _ value: String) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: "\(data)/postgresql.conf"))
        try file.seekToEnd()
        try file.write(contentsOf: Data("\(name) = \(value)\n".utf8))
        try file.close()
    }

    /// Makes a replica writable.
    package func promote() throws {
        try PostgresCommand.run("pg_ctl", asOwner: ["-D", data, "-w", "-t", "60", "promote"])
    }

    /// Makes a replica ignore everything that its primary writes from now on.
    package func stopReceiving() throws {
        try sql("ALTER SYSTEM SET primary_conninfo = ''")
        try sql("SELECT pg_reload_conf()")
        for _ in 0..<Self.recoveryLooksMax {
            if try sql("SELECT count(*) FROM pg_stat_wal_receiver") == "0" { return }
            usleep(10_000)
        }
    }

    /// Kills all processes of the server with SIGKILL.
    package func crash() throws {
        let pid = try processID
        let children = try String(contentsOfFile: "/proc/\(pid)/task/\(pid)/children", encoding: .utf8)
            .split(separator: " ").compactMap { pid_t($0) }
        for process in [pid] + children { kill(process, SIGKILL) }
        for process in [pid] + children {
            while kill(process, 0) == 0, Self.isAlive(process) { usleep(2_000) }
        }
        // Until a parent has waited for the dead process, it looks alive to the server that starts next.
        for file in ["\(data)/postmaster.pid", "\(folder)/.s.PGSQL.\(port).lock"] {
            try FileManager.default.removeItem(atPath: file)
        }
    }

    /// Returns whether a process exists. A killed process stays a zombie until its parent waits for it.
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

    /// Runs SQL with `psql` as the administrator, and returns the unaligned rows. If the server has just crashed, waits
    /// for the end of its recovery.
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

    /// Parts of the messages with which a server refuses clients only for a while, such as during its recovery.
    private static let recoveryMessages = [
        " is in recovery mode", " is not yet accepting connections", " is starting up",
        // Other sessions use all of the memory for locks for a while.
        "out of shared memory",
    ]

    /// Creates a database with a new name. It is empty, or a copy of a database that is not in use.
    package func makeDatabase(template: String = "template0") async throws -> String {
        let name = "test_\(Self.databases.add(1, ordering: .relaxed).newValue)"
        try await OwnThread.run { _ = try self.sql("CREATE DATABASE \(name) TEMPLATE \(template)") }
        return name
    }

    private static let databases = Atomic(0)
    /// The port in the socket's name. Each cluster has its own folder, so all can use the same port.
    private static let socketPort = 5432

    private func configure() throws {
        var settings = [
            "unix_socket_directories": "'\(folder)'", "listen_addresses": options.hasPort ? "'127.0.0.1'" : "''",
            "port": "\(port)", "max_connections": "400", "shared_buffers": "'64MB'",
            "fsync": options.hasFsync ? "on" : "off", "full_page_writes": options.hasFsync ? "on" : "off",
            "max_prepared_transactions": "0", "logging_collector": "off",
        ]
        if options.small == .wal { settings.merge(["min_wal_size": "'2MB'", "max_wal_size": "'4MB'"]) { $1 } }
        settings.merge(options.settings) { $1 }
        try Self.write(settings.sorted { $0.key < $1.key }.map { "\($0) = \($1)" }, to: "\(data)/postgresql.conf")
        try Self.write(
            options.access + ["local all all trust", "local replication all trust"], to: "\(data)/pg_hba.conf")
    }

    /// Overwrites an existing file, which keeps its owner.
    private static func write(_ lines: [String], to path: String) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.truncate(atOffset: 0)
        try file.write(contentsOf: Data((lines.joined(separator: "\n") + "\n").utf8))
        try file.close()
    }
}

/// A shell that stops the server and cleans up when this process closes its end of a socket. This also happens if the
/// process is killed. The shell has its own session, so that Ctrl-C does not reach it.
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
        // The files are created with close-on-exec, so that no other child process inherits them.
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
