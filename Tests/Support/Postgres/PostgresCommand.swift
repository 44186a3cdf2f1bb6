import Foundation

/// The programs of an installed PostgreSQL.
enum PostgresCommand {
    struct Failed: Error {
        let arguments: [String]
        let output: String
    }

    /// The folder of the newest installed version, because Debian has a folder for each. `nil` if no server is
    /// installed.
    static let folder: String? = {
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? []
        let debian = versions.sorted { $0.compare($1, options: .numeric) == .orderedDescending }
            .map { "/usr/lib/postgresql/\($0)/bin" }
        let told = (try? run("/usr/bin/env", ["pg_config", "--bindir"]))?.trimmingCharacters(in: .newlines)
        return (debian + [told].compactMap(\.self)).first {
            FileManager.default.isExecutableFile(atPath: "\($0)/initdb")
                && FileManager.default.isExecutableFile(atPath: "\($0)/postgres")
        }
    }()

    /// The user that runs the server, which refuses to run as root. `nil` means the current user.
    static let owner: String? = geteuid() == 0 ? "postgres" : nil

    @discardableResult
    static func run(_ program: String, _ arguments: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        // The server's user may not be allowed to enter the current directory.
        process.currentDirectoryURL = URL(fileURLWithPath: "/")
        process.standardInput = FileHandle.nullDevice
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = Self.everything(from: pipe.fileHandleForReading.fileDescriptor)
        process.waitForEnd()
        let text = String(decoding: output, as: UTF8.self)
        guard process.terminationStatus == 0 else { throw Failed(arguments: [program] + arguments, output: text) }
        return text
    }

    /// Reads a file to its end. Foundation's method fails if a signal interrupts it, for example when another child
    /// exits.
    private static func everything(from file: Int32) -> Data {
        var output = Data()
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(file, &buffer, buffer.count)
            if count > 0 { output += buffer[..<count] } else if count == 0 || errno != EINTR { return output }
        }
    }

    /// - Parameter words: the command that enters the place to run in, see ``SmallDisk/words``.
    @discardableResult
    static func run(_ name: String, asOwner arguments: [String], within words: [String] = []) throws -> String {
        try run("/usr/bin/env", words + ownersWords(name, arguments))
    }

    /// Runs a program that starts a server and exits. Foundation's `Process` would wait for the server.
    static func runStarter(
        _ name: String, asOwner arguments: [String], within place: [String] = [], log: String
    ) throws {
        let words = ["/usr/bin/env"] + place + ownersWords(name, arguments)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        // A `Process` that starts now would count as running for as long as the server holds the other end of its
        // socket.
        for file in 3..<Int32(min(sysconf(Int32(_SC_OPEN_MAX)), 4_096)) {
            posix_spawn_file_actions_addclose(&actions, file)
        }
        let pointers = words.map { strdup($0) }
        defer { pointers.forEach { free($0) } }
        var child: pid_t = 0
        let code = posix_spawn(&child, words[0], &actions, nil, pointers + [nil], environ)
        guard code == 0 else { throw POSIXError(POSIXErrorCode(rawValue: code) ?? .EIO) }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        guard status == 0 else {
            throw Failed(arguments: words, output: (try? String(contentsOfFile: log, encoding: .utf8)) ?? "")
        }
    }

    private static func ownersWords(_ name: String, _ arguments: [String]) -> [String] {
        (owner.map { ["runuser", "-u", $0, "--"] } ?? []) + ["\(folder ?? "")/\(name)"] + arguments
    }
}
