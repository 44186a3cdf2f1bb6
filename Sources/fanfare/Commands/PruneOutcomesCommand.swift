import ArgumentParser
import Campaigns
import Foundation
import Model
import Store

struct PruneOutcomesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prune-outcomes", abstract: "Delete the outcomes by device of runs that are long over.",
        discussion: """
            Reports stay as they are, kept with the run; what is lost is `report --format csv` of these runs and their \
            part in the history of each device. The outcomes are counted first and deleted after a confirmation, or with \
            --yes. Their space in the store is used again; --shrink gives it back to the disk.
            """)

    @OptionGroup var settings: Settings

    @Option(help: "Of runs over for longer than this, such as 90d (default: `retention` in the configuration).")
    var olderThan: String?
    @Flag(help: "Rewrite the store without its free space; senders wait, and as much disk again is needed meanwhile.")
    var shrink = false
    @Flag(name: .shortAndLong, help: "Do not ask for confirmation.") var yes = false
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let session = try settings.session()
        let store = MaintainStore(store: session.store)
        let age = try age() ?? session.configuration.outcomesKept
        var counts = try await store.pruneOutcomes(
            olderThan: age, isDryRun: true, by: session.actor, now: session.now)
        if counts.runs > 0 {
            try confirm(counts, age)
            counts = try await store.pruneOutcomes(
                olderThan: age, isDryRun: false, by: session.actor, now: session.now)
        }
        if shrink { try await store.shrink() }
        if counts.kept > 0 {
            Console.note("\(counts.kept) runs keep their outcomes: their sums do not close; see `fanfare verify`")
        }
        try show(counts, age, try await store.size())
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
        let words = Self.words(found, age)
        guard Console.isInteractive else {
            throw Failure(.refused, "this would delete \(words); nothing was deleted, give --yes to do it")
        }
        guard Console.confirms("Delete \(words)?") else { throw Failure(.refused, "nothing was deleted") }
    }

    private static func words(_ counts: OutcomePruneCounts, _ age: Duration) -> String {
        "\(counts.deliveries.grouped) outcomes of \(counts.runs) \(counts.runs == 1 ? "run" : "runs") over for more than "
            + WrittenDuration.text(age)
    }

    private func show(_ counts: OutcomePruneCounts, _ age: Duration, _ size: StoreSize) throws {
        if json { return Console.print(try JSONOutput.text(OutcomePruneResult(counts, size))) }
        let done =
            counts.runs > 0
            ? "deleted \(Self.words(counts, age))"
            : "no run is over for more than \(WrittenDuration.text(age)); nothing was deleted"
        let megabytes = (size.bytes / 1_000_000).grouped
        Console.print(
            "\(done)\nthe store takes \(megabytes) MB, of which \((size.freeBytes / 1_000_000).grouped) MB are free")
    }
}
