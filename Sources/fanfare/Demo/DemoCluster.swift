import Campaigns
import Foundation
import Synchronization

/// The programs of an installed PostgreSQL server.
struct PostgresPrograms: Sendable {
    private let folder: String
    /// The user that the server runs as, because it refuses to run as root.
    let owner: String?

    /// Finds the programs. If no server is installed, throws an error with advice.
    init() throws {
        guard let folder = Self.folder else {
            throw Failure(
                .configuration, "no PostgreSQL server is installed; run: apt-get install -y postgresql")
        }
        self.folder = folder
        owner = geteuid() == 0 ? "postgres" : nil
        guard owner == nil || getpwnam("postgres") != nil else {
            throw Failure(
                .configuration,
                "the server needs the user postgres, which does not exist; run the demo as a user other than root")
        }
    }

    /// The folder of the programs. Debian has one folder per version, of which the newest is used. Other systems have
    /// the programs on the PATH.
    private static var folder: String? {
        let debian = "/usr/lib/postgresql"
        let versions = ((try? FileManager.default.contentsOfDirectory(atPath: debian)) ?? [])
            .sorted { $0.compare($1, options: .numeric) == .orderedDescending }.map { "\(debian)/\($0)/bin" }
        let searched = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        return (versions + searched).first { folder in
            ["initdb", "postgres", "createdb"].allSatisfy { access("\(folder)/\($0)", X_OK) == 0 }
        }
    }

    func command(_ program: String, _ arguments: [String]) -> [String] {
        asOwner(["\(folder)/\(program)"] + arguments)
    }

    func asOwner(_ arguments: [String]) -> [String] { (owner.map { ["runuser", "-u", $0, "--"] } ?? []) + arguments }
}

/// The demo's own server, reached only over a socket in its folder.
struct DemoCluster: Sendable {
    private static let readyTime: Duration = .seconds(60)
    /// The exclusive upper limit for the bytes of a socket's path.
    private static let pathBytesMax = 107
    private static let user = "fanfare"

    private let programs: PostgresPrograms
    private let processes: DemoProcesses
    private let folder: String

    /// - Parameters:
    ///   - folder: the server's own folder, which ``start()`` creates.
    ///   - processes: stops the server and removes its folder.
    init(_ programs: PostgresPrograms, in folder: String, _ processes: DemoProcesses) throws {
        guard "\(folder)/.s.PGSQL.5432".utf8.count < Self.pathBytesMax else {
            throw Failure(
                .configuration, "\(folder): too long for the path of a socket; name a shorter folder with --dir")
        }
        self.programs = programs
        self.processes = processes
        self.folder = folder
    }

    /// The server's address for `store:`.
    var url: String {
        let plain = CharacterSet.alphanumerics.union(CharacterSet(charactersIn: "/-._"))
        return "postgres://\(Self.user)@/fanfare?host="
            + (folder.addingPercentEncoding(withAllowedCharacters: plain) ?? folder)
    }

    func start() async throws {
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        if let owner = programs.owner { try await changeOwner(to: owner) }
        try await run("initdb", ["-D", data, "-U", Self.user, "-A", "trust", "-E", "UTF8", "--locale=C", "-N"])
        let server = try processes.start(
            programs.command(
                "postgres", ["-D", data, "-k", folder, "-p", "5432", "-c", "listen_addresses="]),
            log: "postgres", in: "/")
        try await processes.wait(for: "the server", server, log: "postgres", atMost: Self.readyTime) { isReady }
        try await run(
            "createdb", ["-h", folder, "-p", "5432", "-U", Self.user, "-E", "UTF8", "-T", "template0", "fanfare"])
    }

    private var data: String { "\(folder)/data" }

    /// Makes the server's user the owner of the folder. This user must also have access to all parent folders.
    private func changeOwner(to owner: String) async throws {
        try await processes.run(["chown", owner, folder], log: "postgres")
        do {
            try await processes.run(programs.asOwner(["test", "-w", folder]), log: "postgres")
        } catch is Failure {
            throw Failure(
                .configuration,
                "the server's user \(owner) cannot reach \(folder); name a folder with --dir that this user can reach, "
                    + "for example below /tmp")
        }
    }

    private func run(_ program: String, _ arguments: [String]) async throws {
        try await processes.run(programs.command(program, arguments), log: "postgres", name: program)
    }

    /// Whether the server reports in its PID file that it is ready.
    private var isReady: Bool {
        let lines = (try? DemoFolder.text(of: "\(data)/postmaster.pid"))?
            .split(separator: "\n", omittingEmptySubsequences: false)
        return lines.map { $0.count > 7 && $0[7].hasPrefix("ready") } ?? false
    }
}

/// Processes that are killed when this one exits for any reason, and files that are removed with them.
///
/// A watching shell reads a pipe until its end, and then kills the processes. This process holds the pipe's other end,
/// so the shell notices every exit. A started process holds that end only until it has reported itself. The shell has
/// its own session, which no Ctrl-C reaches. Foundation makes each other process the leader of a process group.
final class DemoProcesses: Sendable {
    /// The script of the watching shell. `$1` is the folder of a server, which is stopped before the other processes
    /// are killed. All paths in "$@" are removed.
    private static let watch = """
        trap '' INT TERM HUP
        groups=' '
        while read -r word group; do
            case $word in
            began) groups="$groups$group " ;;
            ended) groups="${groups%% $group *} ${groups#* $group }" ;;
            esac
        done
        pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
        if [ -n "$pid" ]; then
            kill -QUIT "$pid" 2>/dev/null
            tries=0
            while kill -0 "$pid" 2>/dev/null && [ $tries -lt 100 ]; do sleep 0.05; tries=$((tries + 1)); done
            kill -KILL "$pid" 2>/dev/null
        fi
        for group in $groups; do kill -KILL -- "-$group" 2>/dev/null || kill -KILL "$group" 2>/dev/null; done
        tries=0
        while [ $tries -lt 100 ]; do rm -rf "$@" 2>/dev/null && break; sleep 0.05; tries=$((tries + 1)); done
        """
    /// Starts a program whose output goes to the log, see ``start(_:log:in:environment:)``.
    private static let starter = #"umask 077; echo "began $$"; exec "$@" >>"$0" 2>&1"#
    private static let lookEvery: Duration = .milliseconds(50)
    private static let stopTime: Duration = .seconds(20)

    private let logs: String
    private let pipe = Pipe()
    private let watcher = Process()
    private let senders = Mutex<[Int32: Process]>([:])

    /// - Parameters:
    ///   - server: the folder of a cluster that will be started. It is removed at the end.
    ///   - more: other paths to remove.
    ///   - logs: the folder for the processes' output.
    init(server: String, removing more: [String], logs: String) throws {
        self.logs = logs
        watcher.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        watcher.arguments = ["setsid", "sh", "-c", Self.watch, "watch", server] + more
        watcher.currentDirectoryURL = URL(fileURLWithPath: "/")
        watcher.standardInput = pipe.fileHandleForReading
        watcher.standardOutput = FileHandle.nullDevice
        watcher.standardError = FileHandle.nullDevice
        try watcher.run()
    }

    /// - Parameters:
    ///   - log: the name of the log to which the output is appended.
    ///   - folder: the working directory.
    @discardableResult
    func start(
        _ arguments: [String], log: String, in folder: String, environment: [String: String] = [:]
    ) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["sh", "-c", Self.starter, path(ofLog: log)] + arguments
        process.currentDirectoryURL = URL(fileURLWithPath: folder)
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = pipe.fileHandleForWriting
        process.standardError = FileHandle.nullDevice
        try process.run()
        return process
    }

    /// Runs a program to its end. Throws if its exit status is not 0.
    ///
    /// - Parameter name: the tool's name, for a person. `nil` means the first word.
    func run(_ arguments: [String], log: String, name: String? = nil) async throws {
        let before = text(ofLog: log).utf8.count
        let process = try start(arguments, log: log, in: "/")
        while process.isRunning { try await Task.sleep(for: Self.lookEvery) }
        forget(process)
        guard process.terminationStatus == 0 else { throw failed(name ?? arguments[0], log, after: before) }
    }

    /// Starts a sender, which ``kill(_:)`` and ``stop()`` can end.
    func startSender(_ arguments: [String], log: String, in folder: String, machine: String) throws -> Process {
        let process = try start(arguments, log: log, in: folder, environment: ["XDG_STATE_HOME": machine])
        senders.withLock { $0[process.processIdentifier] = process }
        return process
    }

    /// - Parameter log: the log of the process. Its errors are shown if the process ends too early.
    func wait(
        for name: String, _ process: Process, log: String? = nil, atMost time: Duration,
        until isDone: () async throws -> Bool
    ) async throws {
        let before = log.map { text(ofLog: $0).utf8.count } ?? 0
        let deadline = ContinuousClock.now + time
        while true {
            let isRunning = process.isRunning
            if try await isDone() { return }
            guard isRunning, ContinuousClock.now < deadline else { throw failed(name, log, after: before) }
            try await Task.sleep(for: Self.lookEvery)
        }
    }

    /// Kills a sender like `kill -9`, by its process id. Returns `false` if this is not a sender of the demo.
    func kill(_ pid: Int32) async throws -> Bool {
        guard let process = senders.withLock({ $0.removeValue(forKey: pid) }) else { return false }
        Foundation.kill(pid, SIGKILL)
        while process.isRunning { try await Task.sleep(for: Self.lookEvery) }
        forget(process)
        return true
    }

    /// Stops the remaining senders with SIGTERM. Throws if one does not exit with 0.
    func stop() async throws {
        for (pid, process) in senders.withLock({ $0 }) {
            Foundation.kill(pid, SIGTERM)
            try await wait(for: "the sender \(pid)", process, atMost: Self.stopTime) { !process.isRunning }
            guard process.terminationStatus == 0 else { throw failed("the sender \(pid)", nil, after: 0) }
            forget(process)
        }
    }

    /// Kills all remaining processes and removes the files. Waits for the end of both.
    func terminateAll() {
        try? pipe.fileHandleForWriting.close()
        watcher.waitUntilExit()
    }

    private func forget(_ process: Process) {
        try? pipe.fileHandleForWriting.write(contentsOf: Data("ended \(process.processIdentifier)\n".utf8))
    }

    private func path(ofLog log: String) -> String { "\(logs)/\(log).log" }

    private func text(ofLog log: String) -> String { (try? DemoFolder.text(of: path(ofLog: log))) ?? "" }

    /// - Parameter bytes: the size of the log before the tool started.
    private func failed(_ name: String, _ log: String?, after bytes: Int) -> Failure {
        let added = log.map { String(decoding: text(ofLog: $0).utf8.dropFirst(bytes), as: UTF8.self) } ?? ""
        let said = ToolError.lines(of: added)
        guard !said.isEmpty else { return Failure(.internalError, "\(name) failed; see its log in \(logs)") }
        return Failure(.internalError, "\(name) failed:\n  " + said.joined(separator: "\n  "))
    }
}

/// The error output of a tool.
enum ToolError {
    private static let linesMax = 10
    private static let lastMax = 5

    /// Returns the first line that contains an error and the lines after it, which hold details and hints. If no line
    /// contains an error, returns the last lines.
    static func lines(of text: String) -> [String] {
        let lines = text.split(separator: "\n").map(String.init)
        let first = lines.firstIndex { line in
            line.range(of: #"\b(error|fatal|panic):"#, options: [.regularExpression, .caseInsensitive]) != nil
        }
        guard let first else { return Array(lines.suffix(lastMax)) }
        return Array(lines[first...].prefix(linesMax))
    }
}
