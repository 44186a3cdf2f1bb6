import Campaigns
import Foundation
import Model
import Sending
import UnixSignals

/// Who this process is, for the record and for other processes on the store.
enum ThisProcess {
    /// Who runs the command, as the operating system knows them.
    static var actor: Actor {
        // systemd sets it for its units.
        let isUnit = ProcessInfo.processInfo.environment["INVOCATION_ID"] != nil && isatty(STDIN_FILENO) == 0
        return Actor(
            "\(NSUserName()) (uid \(getuid()))", authentication: .account(uid: Int64(getuid()), user: NSUserName()),
            origin: isUnit ? .timer : .command, command: CommandLine.arguments.map(quoted).joined(separator: " "))
    }

    /// This process as a sender of runs: others that look at a run see its name.
    static var sender: Actor { actor.named(ProcessName.current.text) }

    /// The same for `serve`.
    static var daemon: Actor {
        var daemon = sender
        daemon.origin = .daemon
        return daemon
    }

    /// As it could be typed again.
    private static func quoted(_ word: String) -> String {
        let plain = word.allSatisfy { $0.isLetter || $0.isNumber || "-_./=:,@%+".contains($0) }
        return plain && !word.isEmpty ? word : "'" + word.replacing("'", with: "'\\''") + "'"
    }
}

/// Long work that Ctrl-C and SIGTERM end in good order, with exit code 75: a transaction is finished or rolled back.
enum Interruptible {
    /// - Parameters:
    ///   - state: what the user finds after an interruption, and what to do.
    ///   - work: obeys its cancellation.
    static func run<Result: Sendable>(
        _ state: String, _ work: @Sendable @escaping () async throws -> Result
    ) async throws -> Result {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let task = Task { try await work() }
        return try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { await obey(signals) { task.cancel() } }
            do {
                return try await task.value
            } catch is CancellationError {
                throw Failure(.tryAgain, "stopped: \(state)")
            }
        }
    }

    /// The second signal ends the process: the work may be waiting for input that never comes.
    private static func obey(_ signals: UnixSignalsSequence, _ cancel: () -> Void) async {
        var isSecond = false
        for await _ in signals {
            if isSecond { exit(ExitStatus.tryAgain.rawValue) }
            isSecond = true
            Console.note("stopping; once more to stop at once")
            cancel()
        }
    }
}

extension WallClock {
    /// The machine's own time.
    static let system = WallClock(
        boot: MachineStart.name,
        now: { Timestamp(Date()) },
        uptime: SystemUptime.now,
        sleep: { duration in
            // Ends early only when the task is cancelled, and whoever sleeps looks at that itself.
            try? await Task.sleep(for: duration)
        })
}

/// The time since this machine started, as the kernel counts it.
enum SystemUptime {
    /// CLOCK_BOOTTIME: nobody sets it, and it counts the time spent suspended.
    static let now: @Sendable () -> Duration = {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
