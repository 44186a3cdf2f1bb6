import ArgumentParser
import CampaignFiles
import Campaigns
import Foundation
import Model
import SQLiteStore
import Senders
import Store

struct RestoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Replace the store with a backup.",
        discussion: """
            First stop every process that uses the store (`systemctl stop fanfare`): nothing is restored while a \
            sender is alive, or while another process has the store open. No sender starts until the restore is done. \
            A store that has moved to another address is not replaced. The backup is checked, and the current store is \
            kept beside it as STORE.before-TIME. The restored store has the owner and the mode of the old one.
            Pushes sent after the backup are not in it. Runs that were open in the backup are paused as restored: see \
            `fanfare status`. Then `fanfare resume RUN` sends the deliveries open in the backup, and `fanfare cancel \
            RUN` ends the run. For a run that waited for a person, the first `resume` confirms that you know this, \
            and the run waits again. Occurrences and feed items since the backup start no run. The same happens when a \
            backup is put in place by other means and a command that writes, or the daemon, opens it.
            A store on PostgreSQL is restored by pg_restore, which leaves no mark. Stop every sender, restore, run \
            `fanfare stop --all --reason restored`, and then this command with --mark and the time at which the dump \
            began. It has the same effects, is refused while a sender is alive, and changes nothing if the store has \
            this mark already, so repeat it with the same time. With a FILE, the command says this and exits with 78.

            Examples:
              fanfare restore backup.sqlite
              fanfare restore --mark --since 2026-11-29T02:00Z
            """)

    @OptionGroup var settings: Settings
    @Argument(help: "A file created by `fanfare backup`.", completion: .file()) var file: String?
    @Flag(help: "Mark a store on PostgreSQL as restored by pg_restore.") var mark = false
    @Option(help: "With --mark: the time at which the dump began, such as 2026-11-29T02:00Z.")
    var since: String?
    @Flag(name: .shortAndLong, help: "Do not ask for confirmation on a terminal.") var yes = false
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        guard (file == nil) == mark else {
            throw ValidationError("give a FILE, or --mark for a store that pg_restore has restored")
        }
        guard mark == (since != nil) else {
            throw ValidationError("--mark and --since belong together: give the time at which the dump began")
        }
        if let since { _ = try Self.moment(since) }
    }

    /// Returns the time that marks the store. Refuses an age, because it counts from now: the same command would mark
    /// the store again, and pause its runs again.
    private static func moment(_ since: String) throws -> Timestamp {
        if let moment = ISOTime.parse(since) { return moment }
        let reason = WrittenDuration.parse(since).map { _ in "an age names another time in each repetition; " } ?? ""
        throw ValidationError(
            "--since \(since): \(reason)write the time at which the dump began, such as 2026-11-29T02:00Z")
    }

    func run() async throws {
        let configuration = try settings.configuration()
        if let file { try await restore(file, configuration) }
        if let since { try await markRestored(since, configuration) }
    }

    private func markRestored(_ since: String, _ configuration: Configuration) async throws {
        try MaintainStore.requireMarkable(configuration)
        try await requireNoSender(configuration)
        let session = try await settings.session(configuration)
        let madeAt = try Self.moment(since)
        guard madeAt <= session.now else {
            throw ValidationError("--since \(since): this is in the future; give the time at which the dump began")
        }
        try confirm("Mark \(session.store.path) as restored from a dump of \(madeAt.iso8601)?")
        let restored = try await session.useCases.maintaining.markRestored(
            since: madeAt, by: session.actor, now: session.now)
        if let restored { Console.note("warning: \(restored.summary)") }
        let result = RestoreMarkResult(store: session.store.path, madeAt: madeAt, restored: restored)
        Console.print(json ? try ResultJSON.text(result) : result.text)
    }

    private func restore(_ file: String, _ configuration: Configuration) async throws {
        try MaintainStore.requireRestorable(configuration, from: file)
        try await requireNoSender(configuration)
        try await requireSound(file, configuration)
        try confirm("Replace \(configuration.store) with \(file)?")
        // No sender may start between this check and the rename: it would send deliveries unknown to the restored
        // store.
        let hold = try SenderFolder(
            besideStore: configuration.store, command: ThisProcess.command, now: WallClock.system.now
        ).holdStarts()
        defer { hold.release() }
        try await requireNoSender(configuration)
        let summary = try StoreRestoration(file, to: configuration.store).run(now: WallClock.system.now())
        // Opening the copy for writing makes it the store, and warns of the runs that it pauses.
        let session = try await settings.session(configuration)
        let result = RestoreResult(
            file: file, store: configuration.store, setAside: summary.setAside, copy: summary.copy,
            restored: session.store.restored)
        Console.print(json ? try ResultJSON.text(result) : result.text)
    }

    private func requireNoSender(_ configuration: Configuration) async throws {
        guard let senders = try? await StoreOpening.senders(configuration.store), let sender = senders.livingSender()
        else {
            return
        }
        let store = StoreAddress(configuration.store).postgres.map { "\($0)" } ?? configuration.store
        throw Failure(
            .tryAgain,
            "nothing was restored: \(sender) sends from \(store); stop it first, for example with "
                + "`systemctl stop fanfare`")
    }

    /// Checks the copy. A copy of an older version is not checked here, but upgraded when it is opened as the store.
    private func requireSound(_ file: String, _ configuration: Configuration) async throws {
        let opened: OpenedStore
        do {
            opened = try await StoreOpening.open(file, .reading)
        } catch StoreError.olderVersion {
            return
        } catch StoreError.noStore(_, let isEmptyFile) {
            throw Failure(
                .notFound,
                (isEmptyFile ? "\(file) is an empty file" : "no file \(file)")
                    + "; name a file created by `fanfare backup`")
        } catch StoreError.noFolder {
            throw Failure(.notFound, "no file \(file); name a file created by `fanfare backup`")
        }
        let verification = try await MaintainStore(store: opened.store).verifyCopy(configuration)
        for check in verification.brokenBudgets {
            Console.note(
                "warning: \(file): \(check.name): \(check.faultCount.counted("push", "pushes")) beyond the budgets and "
                    + "caps that are configured now, which may have changed since; the backup is restored anyway")
        }
        guard verification.isWhole else {
            throw Failure(
                .invalidData,
                VerificationPage(path: file, verification: verification).text,
                "nothing was restored; use another backup")
        }
    }

    private func confirm(_ question: String) throws {
        guard !yes, Console.isInteractive else { return }
        guard Console.confirms(question) else { throw Failure(.refused, "nothing was restored") }
    }
}
