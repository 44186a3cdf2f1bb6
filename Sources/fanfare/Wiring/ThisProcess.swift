import APNs
import CampaignFiles
import Campaigns
import Foundation
import Model
import Sending
import Store
import Synchronization
import Systemd
import UnixSignals

/// Who this process is, for the record and for other processes on the store.
enum ThisProcess {
    /// Who runs the command, as the operating system knows them.
    static var actor: Actor {
        // systemd sets it for its units.
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

    /// The only way out of the process. It skips the exit handlers of the libraries: a thread that is ending a
    /// connection still uses OpenSSL and libpq, and would crash once these are taken apart.
    static func leave(_ status: Int32) -> Never { _exit(status) }

    /// What it was started for: the command alone, since words after it may be secret.
    static var command: String { CommandLine.arguments.dropFirst().first { !$0.hasPrefix("-") } ?? "" }

    /// This process as a sender of runs: others that look at a run see its name.
    static func sender(_ post: SenderPost) -> Actor { actor.named(post.name) }

    /// The same for `serve`.
    static func daemon(_ post: SenderPost) -> Actor {
        var daemon = sender(post)
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
        // The URL of a store may have any character in its password, though it should not.
        let isStore = text[..<scheme.lowerBound].lowercased().contains("postgres")
        let authority = text[scheme.upperBound...].prefix { isStore || ($0 != "/" && $0 != "?") }
        guard let at = authority.lastIndex(of: "@") else { return text }
        return text[..<scheme.upperBound] + "…" + text[at...]
    }

    /// As it could be typed again.
    private static func quoted(_ word: String) -> String {
        word.shellWord(allowing: "-_./=:,@%+…")
    }
}

/// This process's post among the senders of a store: taken when sending begins, left when the process ends in good order.
enum OwnPost {
    private struct Taken {
        var post: SenderPost
        var journal: PushJournal
        var stops: StopWatch
        var folder: SenderFolder
        var store: any SendingStore
    }

    private static let taken = Mutex<[String: Taken]>([:])

    /// With its journal, what is to be known of those of others, and the stops it obeys.
    static func take(
        _ folder: SenderFolder, _ store: any SendingStore
    ) throws -> (post: SenderPost, journals: SenderJournals, stops: StopWatch) {
        let own = try taken.withLock { taken in
            if let known = taken[folder.path] { return known }
            let post = try folder.take()
            let space = PushID(high: store.namespace.high, low: store.namespace.low)
            let journal = try PushJournal(
                path: post.journalPath, identity: .current(store: space, sender: post.number))
            let own = Taken(
                post: post, journal: journal, stops: .following(folder), folder: folder, store: store)
            taken[folder.path] = own
            return own
        }
        return (own.post, folder.journals(of: store, own: own.journal), own.stops)
    }

    /// Deletes what nobody needs of those that are gone, this one among them.
    static func leave() async {
        let left = taken.withLock { taken in
            defer { taken = [:] }
            return Array(taken.values)
        }
        for entry in left {
            // Before its lock is free: while the store has a heartbeat of it, no store may be moved.
            try? await entry.store.retire(entry.post.name)
            entry.post.leave()
            // What cannot be deleted now is deleted by whoever sends next.
            try? await entry.folder.removeUnneeded(entry.store)
        }
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
            } catch ImportError.stopped {
                throw Failure(.tryAgain, "stopped: \(state)")
            }
        }
    }

    /// The second signal ends the process: the work may be waiting for input that never comes.
    private static func obey(_ signals: UnixSignalsSequence, _ cancel: () -> Void) async {
        var isSecond = false
        for await _ in signals {
            if isSecond { ThisProcess.leave(ExitStatus.tryAgain.rawValue) }
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

extension WallClock {
    /// The time that a server tells to all senders of a store; it has no steps of this machine's.
    static func following(_ now: @escaping @Sendable () -> Timestamp) -> WallClock {
        WallClock(now: now, uptime: SystemUptime.now, sleep: WallClock.system.sleep)
    }
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
