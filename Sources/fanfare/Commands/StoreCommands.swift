import ArgumentParser
import Campaigns
import Foundation
import Model
import OutputFiles
import Store

struct VerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Check the consistency of the store, row by row, without changing it.",
        discussion: """
            You may use this during a run. It looks for uncounted deliveries, accepted deliveries in flight again, \
            leases without an owner, background pushes beyond the silent budget, duplicate tokens, and damage to the \
            file.
            Exit codes: 0 every check passed; 65 a check failed, with the rows that fail it.
            """)

    @OptionGroup var settings: Settings
    @Option(help: "The store to check: a path or a URL (default: the configured one).", completion: .file()) var store:
        String?
    @Option(help: "The number of offending rows to list for each check.") var limit = 20
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        guard limit > 0 else { throw ValidationError("--limit must be at least 1") }
    }

    func run() async throws {
        // A copy on another machine has no configuration beside it.
        let configuration = store == nil ? try settings.configuration() : settings.configurationIfAny()
        let address = store ?? configuration?.store ?? ""
        let opened =
            if store == nil, let configuration {
                try await settings.session(configuration, .reading).opened
            } else {
                try await StoreOpening.open(address, .reading)
            }
        let path = StoreAddress(address).description
        let isConfigured = store == nil
        let verification = try await MaintainStore(store: opened.store).verify(
            configuration, senders: opened.senders, faultsMax: limit)
        Console.print(
            json
                ? try ResultJSON.text(VerificationResult(store: path, verification))
                : VerificationPage(path: path, verification: verification).text)
        if !verification.isSound { throw ExitStatus.invalidData.exitCode }
        // A sound copy proves nothing about the configured store.
        if isConfigured { LastGoodVerify.record(opened.senders) }
    }
}

/// The results of `verify`, as text.
struct VerificationPage {
    let path: String
    let verification: Verification

    var text: String {
        let checks = verification.checks
        let broken = checks.count { $0.faultCount > 0 }
        let verdict =
            broken == 0
            ? "\(path): all \(checks.count) checks passed"
            : "\(path): \(broken) OF \(checks.count) CHECKS FAILED"
        return (checks.flatMap(Self.lines) + ["", "\(verdict)\(budget)."]).joined(separator: "\n")
    }

    private var budget: String {
        guard let check = verification["silent_budget"] else { return "" }
        return "; silent budget violations: \(check.faultCount.grouped)"
    }

    private static func lines(_ check: Verification.Check) -> [String] {
        let mark = check.faultCount > 0 ? "BROKEN" : check.warnings.isEmpty ? "ok" : "warning"
        let count =
            check.faultCount == 0 ? "" : " (\(check.isCountAtLeast ? "at least " : "")\(check.faultCount.grouped))"
        let remark = check.remark.map { "; \($0)" } ?? ""
        let rest = check.faultCount - check.faults.count
        return ["\(mark.padded(to: 7)) \(check.name.padded(to: 15)) \(check.promise)\(count)\(remark)"]
            + check.faults.map { "          \(line($0))" }
            + (rest > 0 ? ["          and \(rest.grouped) more"] : [])
            + check.warnings.map { "          \(line($0))" }
    }

    private static func line(_ fault: StoreFault) -> String {
        let device = fault.device.map { id in "device \(id)" + (fault.tokenEnd.map { " (…\($0))" } ?? "") }
        let place = [fault.run.map { "run \($0)" }, device].compactMap(\.self).joined(separator: ", ")
        return place.isEmpty ? fault.what : "\(place): \(fault.what)"
    }

}

struct BackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Copy the current store to a file, even while it is in use.",
        discussion: """
            The copy is consistent and checked for damage. It gets its name only when it is complete and on disk. It \
            holds complete tokens, so only its owner can read it. `fanfare restore FILE` restores it. A device or a \
            pipe (/dev/stdout) is written through. A store on PostgreSQL is copied by pg_dump: this command then says \
            how, and exits with 78.
            """)

    @OptionGroup var settings: Settings
    @Argument(help: "The path of the copy; its folder must exist.", completion: .file()) var file: String
    @Flag(help: "Replace an existing backup; no other file is replaced.") var force = false
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let configuration = try settings.configuration()
        try MaintainStore.requireFile(configuration, to: file)
        let result = try await copy(configuration)
        let text =
            json
            ? try ResultJSON.text(result)
            : "\(file): \(result.bytes.counted("byte")), \(result.devices.counted("device")), \(result.runs.counted("run")); "
                + "checked, and on disk"
        // Standard output may be the destination of the copy.
        if (try? OutputPath(file).entry()) == .stream { Console.note(text) } else { Console.print(text) }
    }

    /// Copies the store. A store on a read-only file system, such as a snapshot, gets no audit entry.
    private func copy(_ configuration: Configuration) async throws -> BackupResult {
        do {
            let session = try await settings.session(configuration)
            return try await session.useCases.maintaining.backUp(
                to: file, overwriting: force, by: session.actor, now: session.now)
        } catch StoreError.readOnlyFileSystem {
            let session = try await settings.session(configuration, .reading)
            return try await session.useCases.maintaining.copy(to: file, overwriting: force)
        }
    }
}

struct PruneOutcomesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prune-outcomes", abstract: "Delete the outcomes by device of old runs.",
        discussion: """
            Reports are kept with the run. You lose `report --format csv` and the export of deliveries of these runs, \
            their comparisons with the devices held out, and their part in the history of each device. The outcomes are counted first and deleted after a confirmation, or with \
            --yes. The store reuses their space; --shrink returns it to the disk.
            """)

    @OptionGroup var settings: Settings

    @Option(help: "The minimum age since the end of a run, such as 90d (default: `retention` in the configuration).")
    var olderThan: String?
    @Flag(
        help:
            "Rewrite the store without its free space. Senders wait, and free disk space of the store's size is needed."
    )
    var shrink = false
    @Flag(name: .shortAndLong, help: "Do not ask for confirmation.") var yes = false
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let configuration = try settings.configuration()
        let age = try age() ?? configuration.retention.outcomes
        let session = try await settings.session(configuration)
        let maintenance = session.useCases.maintaining
        var counts = try await maintenance.pruneOutcomes(
            olderThan: age, isDryRun: true, by: session.actor, now: session.now)
        if counts.runs > 0 {
            try confirm(counts, age)
            counts = try await maintenance.pruneOutcomes(
                olderThan: age, isDryRun: false, by: session.actor, now: session.now)
        }
        if shrink { try await maintenance.shrink() }
        Self.note(counts.unbalanced, "the counts do not balance; see `fanfare verify`")
        Self.note(counts.inUse, "another program was reading them; the next prune deletes them")
        try show(counts, age, try await maintenance.size())
    }

    private static func note(_ kept: Int, _ reason: String) {
        guard kept > 0 else { return }
        Console.note("\(kept.counted("run keeps its outcomes", "runs keep their outcomes")): \(reason)")
    }

    private func age() throws -> Duration? {
        guard let olderThan else { return nil }
        guard let age = WrittenDuration.parse(olderThan), age > .zero else {
            throw ValidationError("--older-than \(olderThan): write an age such as 90d")
        }
        return age
    }

    private func confirm(_ found: OutcomePruneCounts, _ age: Duration) throws {
        if yes { return }
        let summary = Self.summary(found, age)
        guard Console.isInteractive else {
            throw Failure(.refused, "this would delete \(summary); nothing was deleted; give --yes to delete")
        }
        guard Console.confirms("Delete \(summary)?") else { throw Failure(.refused, "nothing was deleted") }
    }

    private static func summary(_ counts: OutcomePruneCounts, _ age: Duration) -> String {
        "\(counts.deliveries.counted("outcome")) of \(counts.runs.counted("run")) over for more than "
            + WrittenDuration.text(age)
    }

    private func show(_ counts: OutcomePruneCounts, _ age: Duration, _ size: StoreSize) throws {
        if json { return Console.print(try ResultJSON.text(OutcomePruneResult(counts, size))) }
        let done =
            counts.runs > 0
            ? "deleted \(Self.summary(counts, age))"
            : "no run ended more than \(WrittenDuration.text(age)) ago; nothing was deleted"
        let megabytes = (size.bytes / 1_000_000).grouped
        Console.print(
            "\(done)\nthe store uses \(megabytes) MB, of which \((size.freeBytes / 1_000_000).grouped) MB are free")
    }
}
