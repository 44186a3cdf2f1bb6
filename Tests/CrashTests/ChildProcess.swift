import Foundation
import TestSupport
import Testing

/// A child process, started without a shell, with its output in files.
struct ChildProcess {
    enum End: Hashable {
        case exited(Int32)
        case killed(Int32)
    }

    struct StartFailure: Error {
        var program: String
        var code: Int32
    }

    let pid: pid_t
    let outputPath: String
    let errorPath: String

    static let program = BuiltProgram.url.path

    init(_ arguments: [String], folder: String, name: String, environment: [String: String] = [:]) throws {
        outputPath = "\(folder)/\(name).out"
        errorPath = "\(folder)/\(name).err"
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }.map { "\($0)=\($1)" }
        pid = try Self.spawn([Self.program] + arguments, variables, outputPath, errorPath)
    }

    var output: String { (try? String(contentsOfFile: outputPath, encoding: .utf8)) ?? "" }
    var errors: String { (try? String(contentsOfFile: errorPath, encoding: .utf8)) ?? "" }

    func signal(_ number: Int32) {
        kill(pid, number)
    }

    /// Whether the process has exited. The caller must still wait for it.
    var hasEnded: Bool {
        var info = siginfo_t()
        return waitid(P_PID, id_t(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_signo == SIGCHLD
    }

    /// The maximum time that a test waits for a child. No child takes that long, and a hanging one must not block the
    /// rest.
    static let longest: DispatchTimeInterval = .seconds(400)

    /// Waits for the end of the child, and kills it after ``longest``.
    func wait() -> End {
        let overdue = DispatchWorkItem { kill(pid, SIGKILL) }
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.longest, execute: overdue)
        defer { overdue.cancel() }
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        return Self.end(status)
    }

    /// Waits for the end of the child, and kills it after `limit`.
    func wait(killingAfter limit: Duration) -> End {
        let deadline = ContinuousClock.now + limit
        var status: Int32 = 0
        while true {
            let found = waitpid(pid, &status, WNOHANG)
            if found == pid { return Self.end(status) }
            if ContinuousClock.now >= deadline { break }
            usleep(500)
        }
        signal(SIGKILL)
        return wait()
    }

    private static func end(_ status: Int32) -> End {
        let signal = status & 0x7F
        return signal == 0 ? .exited(status >> 8 & 0xFF) : .killed(signal)
    }

    private static func spawn(
        _ arguments: [String], _ variables: [String], _ output: String, _ errors: String
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        let argv = arguments.map { strdup($0) } + [nil]
        let envp = variables.map { strdup($0) } + [nil]
        defer { for text in argv + envp { free(text) } }
        var pid: pid_t = 0
        let code = posix_spawn(&pid, program, &actions, nil, argv, envp)
        guard code == 0 else { throw StartFailure(program: program, code: code) }
        return pid
    }
}
