import ArgumentParser
import CampaignFiles
import Campaigns
import Foundation
import Model
import Store

struct DevicesPruneCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prune", abstract: "Delete devices that are long gone or were not seen for long.",
        discussion: """
            A moment is a date (2026-01-31), a time (2026-01-31T09:00Z) or an age (180d). The devices are counted first and \
            deleted after a confirmation, or with --yes. What the runs did to them stays in their reports.
            """)

    @OptionGroup var settings: Settings

    @Option(help: "Devices whose token APNs called gone before this moment.") var goneBefore: String?
    @Option(help: "Devices neither seen nor registered by the app's backend since this moment.")
    var notSeenSince: String?
    @Option(help: "Only devices of this topic.") var topic: String?
    @Flag(name: .shortAndLong, help: "Do not ask for confirmation.") var yes = false
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        guard goneBefore != nil || notSeenSince != nil else {
            throw ValidationError("give --gone-before, --not-seen-since or both")
        }
    }

    func run() async throws {
        let session = try settings.session()
        let gone = try goneBefore.map { try Self.moment($0, "--gone-before", session.now) }
        let seen = try notSeenSince.map { try Self.moment($0, "--not-seen-since", session.now) }
        let prune = { isDryRun in
            try await ManageDevices(store: session.store).prune(
                goneBefore: gone, notSeenSince: seen, topic: topic, isDryRun: isDryRun, by: session.actor,
                now: session.now)
        }
        let found = try await prune(true)
        if found.kept > 0 {
            Console.note(
                "\(found.kept.devices) had a background push lately and stay until it no longer counts against their budget"
            )
        }
        guard found.total > 0 else { return try show(found, deleted: false, "no such devices; nothing was deleted") }
        try confirm(found)
        let pruned = try await prune(false)
        try show(pruned, deleted: true, "deleted \(Self.words(pruned))")
    }

    private static func moment(_ text: String, _ option: String, _ now: Timestamp) throws -> Timestamp {
        guard let moment = ISOTime.parse(text) ?? WrittenDuration.parse(text).map({ now - $0 }) else {
            throw ValidationError("\(option) \(text): write a date such as 2026-01-31, or an age such as 180d")
        }
        guard moment < now else {
            throw ValidationError("\(option) \(text): that is not in the past; it would take devices in use")
        }
        return moment
    }

    private func confirm(_ found: PruneCounts) throws {
        if yes { return }
        let words = Self.words(found)
        guard Console.isInteractive else {
            throw Failure(.refused, "this would delete \(words); nothing was deleted, give --yes to do it")
        }
        guard Console.confirms("Delete \(words)?") else { throw Failure(.refused, "nothing was deleted") }
    }

    private static func words(_ counts: PruneCounts) -> String {
        var parts: [String] = []
        if counts.gone > 0 { parts.append("\(counts.gone.grouped) gone") }
        if counts.notSeen > 0 { parts.append("\(counts.notSeen.grouped) not seen") }
        return "\(counts.total.devices) (\(parts.joined(separator: ", ")))"
    }

    private func show(_ counts: PruneCounts, deleted: Bool, _ text: String) throws {
        Console.print(json ? try JSONOutput.text(PruneResult(counts, deleted: deleted)) : text)
    }
}
