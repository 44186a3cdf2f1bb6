import APNs
import CampaignFiles
import Campaigns
import Foundation
import Model
import Platform
import Senders
import Sending
import Store
import Synchronization
import Systemd
import UnixSignals

/// The identity of this process, for the audit log and for other processes that use the store.
enum ThisProcess {
    /// The actor: the user and the signed-in person, as the operating system knows them.
    static var actor: Actor {
        // systemd sets this variable for its units.
        let isUnit = ProcessInfo.processInfo.environment["INVOCATION_ID"] != nil && isatty(STDIN_FILENO) == 0
        let user = SignedInUser.name(of: getuid())
        var actor = Actor(
            "\(user) (uid \(getuid()))", authentication: .account(uid: Int64(getuid()), user: user),
            origin: isUnit ? .timer : .command, command: RecordedCommand.text(CommandLine.arguments))
        if let person = SignedInUser.name, person != user {
            actor.signedInAs = "os:\(person)"
            actor.signedInUID = SignedInUser.uid.map(Int64.init)
            actor.name += " for \(person)"
        }
        return actor
    }

    /// Exits the process. Every exit goes through here. Skips the exit handlers of the libraries. A thread that closes
    /// a connection still uses OpenSSL and libpq, and would crash after their shutdown.
    ///
    /// A command whose result was lost is not done.
    static func exitImmediately(_ status: Int32) -> Never {
        var status = status
        if status == ExitStatus.done.rawValue, Console.hasLostResult { status = ExitStatus.inputOutput.rawValue }
        _exit(status)
    }

    /// The command of this process, without the words after it, because they may be secret.
    static var command: String { CommandLine.arguments.dropFirst().first { !$0.hasPrefix("-") } ?? "" }

    /// Returns this process as a sender of runs. Other processes that read a run see its name.
    static func sender(_ registration: SenderRegistration) -> Actor { actor.named(registration.name) }

    /// Returns this process as the sender of `serve`.
    static func daemon(_ registration: SenderRegistration) -> Actor {
        var daemon = sender(registration)
        daemon.origin = .daemon
        return daemon
    }

    /// Prevents core dumps, because keys, tokens and secrets are in memory and a crash must not write them to a file.
    ///
    /// PR_SET_DUMPABLE is no alternative. If /proc shows only traceable processes (`hidepid`, `ProtectProc=invisible`),
    /// it would hide the process from its user's other processes. These must see whether a sender is alive. The limit
    /// does not apply if the kernel pipes the dump to a handler. The filter then keeps all memory out of it.
    static func keepMemoryPrivate() {
        var limit = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
        // If /proc is missing, nothing more can be done.
        try? Data("0".utf8).write(to: URL(fileURLWithPath: "/proc/self/coredump_filter"))
    }
}

/// A command line for the audit log, without its secrets.
///
/// Tokens and keys are recognised by their form, see ``Redaction``, and passwords by the name of their option or
/// variable.
enum RecordedCommand {
    private static let secretNames = [
        "secret", "password", "passphrase", "passwd", "token", "authorization", "api_key",
    ]

    static func text(_ arguments: [String]) -> String {
        arguments.enumerated().map { index, word in
            // The value of an option is the next word, or part of the same word.
            let isSecret = index > 0 && arguments[index - 1].hasPrefix("--") && isSecret(arguments[index - 1][...])
            return quoted(isSecret ? "…" : redacted(word))
        }.joined(separator: " ")
    }

    private static func isSecret(_ name: Substring) -> Bool {
        let name = name.lowercased().replacing("-", with: "_")
        return secretNames.contains { name.hasSuffix($0) }
    }

    /// Redacts `name=value` by its name first. In a web address each part of the query is checked by its own name.
    private static func redacted(_ word: String) -> String {
        // The value of an option or variable may contain any character, also `&`.
        let isValue = secretSign(in: word[...]).map { !word[..<$0].contains("?") } ?? false
        let all = isValue ? [word[...]] : word.split(separator: "&", omittingEmptySubsequences: false)
        let parts = all.map { part in
            guard let sign = secretSign(in: part), !part[sign...].dropFirst().isEmpty else {
                return Redaction.withoutTokens(part)
            }
            return Redaction.withoutTokens(part[..<sign]) + "=…"
        }
        return withoutAccount(parts.joined(separator: "&"))
    }

    /// Returns the first `=` after the name of a secret; `nil` if there is none. The secret is everything after it,
    /// because a password may contain `=`.
    private static func secretSign(in part: Substring) -> Substring.Index? {
        let signs = part.unicodeScalars
        var start = part.startIndex
        for index in signs.indices where signs[index] == "=" || signs[index] == "?" {
            if signs[index] == "=", isSecret(part[start..<index]) { return index }
            start = signs.index(after: index)
        }
        return nil
    }

    /// Returns `https://user:password@host` as `https://…@host`.
    private static func withoutAccount(_ text: String) -> String {
        guard let scheme = text.firstRange(of: "://") else { return text }
        // The URL of a store may contain any character in its password, although it should not.
        let isStore = text[..<scheme.lowerBound].lowercased().contains("postgres")
        let authority = text[scheme.upperBound...].prefix { isStore || ($0 != "/" && $0 != "?") }
        guard let at = authority.lastIndex(of: "@") else { return text }
        return text[..<scheme.upperBound] + "…" + text[at...]
    }

    /// Returns the word as a shell accepts it.
    private static func quoted(_ word: String) -> String {
        word.shellWord(allowing: "-_./=:,@%+…")
    }
}

/// The registration of this process as a sender of a store, from the start of sending until a normal exit.
enum OwnRegistration {
    private struct Entry {
        var registration: SenderRegistration
        var journal: PushJournal
        var stops: StopWatch
        var folder: SenderFolder
        var store: any SendingStore
    }

    private static let registered = Mutex<[String: Entry]>([:])

    /// Registers this process, with its journal, the journals of other senders, and the stops that it obeys.
    static func register(
        _ folder: SenderFolder, _ store: any SendingStore & StoreUpkeep
    ) throws -> (registration: SenderRegistration, journals: SenderJournals, stops: StopWatch) {
        let own = try registered.withLock { registered in
            if let known = registered[folder.path] { return known }
            let registration = try folder.register()
            folder.note(store: store.path)
            let space = PushID(high: store.namespace.high, low: store.namespace.low)
            let journal = try PushJournal(
                path: registration.journalPath, identity: .current(store: space, sender: registration.number))
            let own = Entry(
                registration: registration, journal: journal, stops: .following(folder), folder: folder, store: store)
            registered[folder.path] = own
            return own
        }
        return (own.registration, folder.journals(of: store, own: own.journal), own.stops)
    }

    /// Retires this process in all stores. Deletes the unneeded files of dead senders and of this process.
    static func releaseAll() async {
        let left = registered.withLock { registered in
            defer { registered = [:] }
            return Array(registered.values)
        }
        for entry in left {
            // Retire before the lock is released: while the store has a heartbeat of this sender, the store cannot be
            // moved.
            try? await entry.store.retire(entry.registration.name)
            entry.registration.release()
            // The next sender deletes the files that cannot be deleted now.
            try? await entry.folder.removeUnneeded(entry.store)
        }
    }
}

/// Runs long work that Ctrl-C and SIGTERM end cleanly, with exit code 75. A transaction is finished or rolled back.
enum Interruptible {
    /// - Parameters:
    ///   - state: what the user finds after an interruption, and what to do.
    ///   - work: the work, which must respond to its cancellation.
    static func run<Result: Sendable>(
        _ state: String, _ work: @Sendable @escaping () async throws -> Result
    ) async throws -> Result {
        let signals = await SecondSignal.first(of: .sigint, .sigterm)
        defer { SecondSignal.workEnded() }
        let task = Task { try await work() }
        return try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { await obey(signals) { task.cancel() } }
            do {
                return try await task.value
            } catch is CancellationError {
                throw Failure(.tryAgain, "stopped: \(state)")
            } catch ImportError.stopped {
                throw Failure(.tryAgain, "stopped: \(state)")
            }
        }
    }

    /// Cancels the work at the first signal, and exits at the second. The work may be waiting for input that never
    /// comes.
    private static func obey(_ signals: UnixSignalsSequence, _ cancel: () -> Void) async {
        for await _ in signals {
            cancel()
            SecondSignal.exits(promising: "stopping; press Ctrl-C again to stop immediately")
        }
    }
}

extension WallClock {
    /// The clock of this machine.
    static let system = WallClock(
        boot: MachineStart.name,
        now: { Timestamp(Date()) },
        uptime: SystemUptime.now,
        sleep: { duration in
            // The sleep ends early only if the task is cancelled. The caller checks for that itself.
            try? await Task.sleep(for: duration)
        })
}

extension WallClock {
    /// Returns the time that a server gives to all senders of a store. Clock steps of this machine do not affect it.
    static func following(_ now: @escaping @Sendable () -> Timestamp) -> WallClock {
        WallClock(now: now, uptime: SystemUptime.now, sleep: WallClock.system.sleep)
    }
}

/// The time since this machine started, as the kernel counts it.
enum SystemUptime {
    /// CLOCK_BOOTTIME, which cannot be set and includes the time spent suspended.
    static let now: @Sendable () -> Duration = {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
