import ArgumentParser
import CampaignFiles
import Campaigns
import Foundation
import Model
import Store

struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "Import, export, look up and prune devices.",
        subcommands: [
            DevicesImportCommand.self, DevicesExportCommand.self, DevicesShowCommand.self, DevicesPruneCommand.self,
        ])
}

struct DevicesShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show devices, or without an argument how many there are.")

    @OptionGroup var settings: Settings
    @Argument(help: "An installation id, a user id, a token or its last 8 characters.") var text: String?
    @Flag(help: "List the suspended devices, each with its reason.") var suspended = false
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        if suspended, text != nil { throw ValidationError("give a device or --suspended, not both") }
    }

    func run() async throws {
        let devices = ManageDevices(store: try settings.session().store)
        if suspended { return try await SuspendedDevices(json: json).show(devices) }
        guard let text else { return try show(try await devices.counts()) }
        let found = try await devices.find(text)
        Console.print(
            json
                ? try ResultJSON.text(found.map(DeviceResult.init))
                : found.map(DeviceText.text).joined(separator: "\n\n"))
    }

    private func show(_ counts: [DeviceCountResult]) throws {
        if json { return Console.print(try ResultJSON.text(counts)) }
        if counts.isEmpty { return Console.print("no devices; add some with `fanfare devices import FILE`") }
        for count in counts {
            Console.print(
                "\(count.topic)  \(count.environment.padded(to: 10))  \(count.status.padded(to: 9))  "
                    + count.count.grouped.rightAligned(to: 12))
        }
    }
}

struct DevicesExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Write devices as CSV, in the columns `devices import` reads.",
        discussion: "The file holds whole tokens: it is created readable by its owner only.")

    @OptionGroup var settings: Settings
    @Option(help: "Only devices this audience expression selects.") var matching: String?
    @Option(help: "Only devices of this topic.") var topic: String?
    @Option(name: .shortAndLong, help: "Write to this file instead of standard output.") var output: String?

    func run() async throws {
        let session = try settings.session()
        let file = try OutputFile(output)
        nonisolated(unsafe) let sink = file
        let count = try await ManageDevices(store: session.store).export(
            matching: matching, topic: topic, to: output, by: session.actor, now: session.now
        ) { try sink.write($0) }
        try file.finish()
        Console.note("\(count.grouped) devices")
    }
}

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
        Console.print(json ? try ResultJSON.text(PruneResult(counts, deleted: deleted)) : text)
    }
}
