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
            origin: isUnit ? .timer : .command, command: RecordedCommand.text(CommandLine.arguments))
    }

    /// This process as a sender of runs: others that look at a run see its name.
    static var sender: Actor { actor.named(ProcessName.current.text) }

    /// The same for `serve`.
    static var daemon: Actor {
        var daemon = sender
        daemon.origin = .daemon
        return daemon
    }

    /// Keys, tokens and secrets are in its memory: a crash must not leave them in a file.
    ///
    /// Not by PR_SET_DUMPABLE, which would also hide the process from others of its user where /proc shows only what may
    /// be traced (`hidepid`, `ProtectProc=invisible`): they are to see whether a sender is alive. Handlers that the kernel
    /// pipes a dump to are not bound by the limit; what goes into the dump is, by the filter.
    static func keepMemoryPrivate() {
        var limit = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
        // Without /proc there is nothing more to be done.
        try? Data("0".utf8).write(to: URL(fileURLWithPath: "/proc/self/coredump_filter"))
    }
}

/// A command line as it goes on record: what was asked for, by which options, without what is a secret.
///
/// Tokens and keys are known by their looks, see ``Redaction``, passwords by the name of their option or variable.
enum RecordedCommand {
    private static let secretNames = [
        "secret", "password", "passphrase", "passwd", "token", "authorization", "api_key",
    ]

    static func text(_ words: [String]) -> String {
        words.enumerated().map { index, word in
            // The value of an option stands behind it, or in it.
            let isSecret = index > 0 && words[index - 1].hasPrefix("--") && isSecret(words[index - 1][...])
            return quoted(isSecret ? "…" : redacted(word))
        }.joined(separator: " ")
    }

    private static func isSecret(_ name: Substring) -> Bool {
        let name = name.lowercased().replacing("-", with: "_")
        return secretNames.contains { name.hasSuffix($0) }
    }

    /// `name=value` is looked at by its name first, in a web address by that of each part of its query.
    private static func redacted(_ word: String) -> String {
        let parts = word.split(separator: "&", omittingEmptySubsequences: false).map { part in
            guard let sign = part.lastIndex(of: "="), isSecret(nameBefore(sign, in: part)), !part.hasSuffix("=") else {
                return Redaction.withoutTokens(part)
            }
            return Redaction.withoutTokens(part[..<sign]) + "=…"
        }
        return withoutAccount(parts.joined(separator: "&"))
    }

    private static func nameBefore(_ sign: Substring.Index, in part: Substring) -> Substring {
        let name = part[..<sign]
        return name.lastIndex { "?=".contains($0) }.map { name[name.index(after: $0)...] } ?? name
    }

    /// `https://user:password@host` as `https://…@host`.
    private static func withoutAccount(_ text: String) -> String {
        guard let scheme = text.firstRange(of: "://") else { return text }
        let authority = text[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" }
        guard let at = authority.lastIndex(of: "@") else { return text }
        return text[..<scheme.upperBound] + "…" + text[at...]
    }

    /// As it could be typed again.
    private static func quoted(_ word: String) -> String {
        let plain = word.allSatisfy { $0.isLetter || $0.isNumber || "-_./=:,@%+…".contains($0) }
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
        now: { Timestamp(Date()) },
        sleep: { duration in
            // Ends early only when the task is cancelled, and whoever sleeps looks at that itself.
            try? await Task.sleep(for: duration)
        })
}
