import ArgumentParser
import CampaignFiles
import Campaigns
import Foundation
import Model
import OutputFiles
import Store

struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "Import, export, look up, prune and remove devices.",
        subcommands: [
            DevicesImportCommand.self, DevicesExportCommand.self, DevicesShowCommand.self, DevicesPruneCommand.self,
            DevicesRemoveCommand.self,
        ])
}

struct DevicesShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show devices, or their number if no argument is given.")

    @OptionGroup var settings: Settings
    @Argument(help: "An installation id, a user id, a token or its last 8 characters.") var text: String?
    @Flag(help: "List the suspended devices, each with its reason.") var suspended = false
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        if suspended, text != nil { throw ValidationError("give a device or --suspended, not both") }
    }

    func run() async throws {
        let devices = try await settings.session(.reading).useCases.devices
        if suspended { return try await SuspendedDevices(json: json).show(devices) }
        guard let text else { return try show(try await devices.counts()) }
        let found = try await devices.find(text)
        Console.print(
            json
                ? try ResultJSON.text(found.map(DeviceResult.whole))
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
        discussion: """
            An import of the file restores what it holds: profile, badge, tags, and the attributes as one JSON object. \
            The file holds complete tokens, so only its owner can read it.
            """)

    @OptionGroup var settings: Settings
    @Option(help: "Only devices this audience expression selects.") var matching: String?
    @Option(help: "Only devices of this topic.") var topic: String?
    @Option(name: .shortAndLong, help: "Write to this file instead of standard output.") var output: String?

    func run() async throws {
        let session = try await settings.session()
        let file = try OutputFile(output, .closedToOthers)
        nonisolated(unsafe) let sink = file
        let devices = session.useCases.devices
        let export = try await devices.export(
            matching: matching, topic: topic, to: output, by: session.actor, now: session.now
        ) { try sink.writeRows($0) }
        try file.finish()
        try await devices.recordExport(of: export.devices, to: output, by: session.actor, now: session.now)
        Console.note(export.devices.counted("device"))
        if let warning = export.warning { Console.note("warning: \(warning)") }
    }
}

struct DevicesPruneCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prune", abstract: "Delete devices that are gone or have not been seen for a long time.",
        discussion: """
            A moment is a date (2026-01-31), a time (2026-01-31T09:00Z) or an age (180d). The devices are counted first and \
            deleted after a confirmation, or with --yes. Their outcomes stay in the runs' reports.
            """)

    @OptionGroup var settings: Settings

    @Option(help: "Devices whose token APNs reported as gone before this moment.") var goneBefore: String?
    @Option(help: "Devices neither seen nor registered by the app's backend since this moment.")
    var notSeenSince: String?
    @Option(help: "Only devices of this topic.") var topic: String?
    @Flag(name: .shortAndLong, help: "Do not ask for confirmation.") var yes = false
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        guard goneBefore != nil || notSeenSince != nil else {
            throw ValidationError("give --gone-before, --not-seen-since or both")
        }
        _ = try moments(before: WallClock.system.now())
    }

    func run() async throws {
        let session = try await settings.session()
        let (gone, seen) = try moments(before: session.now)
        let prune = { isDryRun in
            try await session.useCases.devices.prune(
                goneBefore: gone, notSeenSince: seen, topic: topic, isDryRun: isDryRun, by: session.actor,
                now: session.now)
        }
        let found = try await prune(true)
        if found.kept > 0 {
            Console.note(
                "\(found.kept.devices) got a push recently and are kept while it counts for the silent budget or a "
                    + "frequency cap"
            )
        }
        guard found.total > 0 else { return try show(found, deleted: false, "no such devices; nothing was deleted") }
        try confirm(found)
        let pruned = try await prune(false)
        try show(pruned, deleted: true, "deleted \(Self.summary(pruned))")
    }

    private func moments(before now: Timestamp) throws -> (gone: Timestamp?, seen: Timestamp?) {
        (
            try goneBefore.map { try Self.moment($0, "--gone-before", now) },
            try notSeenSince.map { try Self.moment($0, "--not-seen-since", now) }
        )
    }

    private static func moment(_ text: String, _ option: String, _ now: Timestamp) throws -> Timestamp {
        guard let moment = MomentOption.parse(text, now: now) else {
            throw ValidationError("\(option) \(text): write a date such as 2026-01-31, or an age such as 180d")
        }
        guard moment < now else {
            throw ValidationError("\(option) \(text): give a moment in the past; this one would delete devices in use")
        }
        return moment
    }

    private func confirm(_ found: PruneCounts) throws {
        if yes { return }
        let summary = Self.summary(found)
        guard Console.isInteractive else {
            throw Failure(.refused, "this would delete \(summary); nothing was deleted; give --yes to delete")
        }
        guard Console.confirms("Delete \(summary)?") else { throw Failure(.refused, "nothing was deleted") }
    }

    private static func summary(_ counts: PruneCounts) -> String {
        var parts: [String] = []
        if counts.gone > 0 { parts.append("\(counts.gone.grouped) gone") }
        if counts.notSeen > 0 { parts.append("\(counts.notSeen.grouped) not seen") }
        return "\(counts.total.devices) (\(parts.joined(separator: ", ")))"
    }

    private func show(_ counts: PruneCounts, deleted: Bool, _ text: String) throws {
        Console.print(json ? try ResultJSON.text(PruneResult(counts, deleted: deleted)) : text)
    }
}

struct DevicesRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Delete the devices of a person, with their reports.",
        discussion: """
            The devices are shown first and deleted after a confirmation, or with --yes. A device whose pushes still \
            count for a silent budget or a frequency cap keeps a row with its token and its installation id alone, so \
            that registering it again does not reset them. The daemon deletes that row in a night, at most 31 days later.
            """)

    @OptionGroup var settings: Settings
    @Argument(help: "An installation id, the id of a user for all devices of this user, or a whole token.")
    var text: String
    @Option(help: "Only devices of this topic.") var topic: String?
    @Flag(name: .shortAndLong, help: "Do not ask for confirmation.") var yes = false
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session()
        let devices = session.useCases.devices
        let sees = { (topic: String) in self.topic == nil || topic == self.topic }
        let removed = try await devices.remove(
            named: text, by: session.actor, now: session.now, sees: sees, confirm: confirm)
        Console.print(json ? try ResultJSON.text(removed) : Self.text(removed))
    }

    private func confirm(_ found: [StoredDevice]) throws {
        if yes { return }
        for device in found {
            Console.note(
                "\(device.record.installationID ?? device.record.token.redacted)  \(device.record.topic)  "
                    + "\(device.record.environment.rawValue)  \(device.status.rawValue)")
        }
        guard Console.isInteractive else {
            throw Failure(.refused, "this would delete these devices; nothing was deleted; give --yes to delete")
        }
        guard Console.confirms("Delete these devices?") else { throw Failure(.refused, "nothing was deleted") }
    }

    private static func text(_ removed: [DeviceRemovalResult]) -> String {
        let kept = removed.count { !$0.deleted }
        let text = "removed \(removed.count.counted("device"))"
        guard kept > 0 else { return text }
        let rows = kept == 1 ? "1 of them keeps a row" : "\(kept.grouped) of them keep rows"
        return "\(text); \(rows) without personal data until their pushes no longer count"
    }
}

struct DevicesImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Add and update devices from CSV or JSON Lines.",
        discussion: """
            Only token, environment and topic are required. The topic is the bundle id for alert, background and mdm pushes; \
            tokens for another push type are imported with its suffix: com.example.app.voip for voip, \
            .complication, .location-query, .pushkit.fileprovider, .push-type.liveactivity, .voip-ptt (pushtotalk), \
            .push-type.widgets, .push-type.controls. A known installation gets its new token and keeps its history. \
            Bad lines go to the rejects file with line number and reason; good lines are kept, and the exit code is 65. \
            An unusable value, such as an invalid locale, is left out with a warning, and its device is kept. In CSV the \
            tags of a device are separated by semicolons.

            An absent column or an empty cell keeps the stored value. \\N as a cell or as a JSON string removes the \
            value of user_id, locale, time_zone, country, app_version, os_version, model, alerts_allowed, tags, \
            attributes.NAME, and all attributes. A line's attributes are added to the stored ones; with \
            --replace-attributes they replace them all. The badge is a number that sets the count; an app that clears \
            its icon sends 0.

            After an interruption, run the same import again: devices already stored count as unchanged.
            """)

    @OptionGroup var settings: Settings
    @Argument(
        help: "A file with a header line (CSV) or one object per line (JSON Lines); - for standard input.",
        completion: .file())
    var file: String
    @Option(help: "csv or jsonl (default: detected from the file's first character).") var format: ImportFormat?
    @Option(help: "The file for bad lines (default: FILE.rejects.csv).") var rejects: String?
    @Flag(help: "Remove stored attributes that a line with attributes does not name.") var replaceAttributes = false
    @Flag(help: "Read and check everything and say what would change, but change nothing.") var dryRun = false
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        if dryRun {
            try await settings.withTrialSession { try await run($0) }
        } else {
            try await run(try await settings.session(.making))
        }
    }

    private func run(_ session: Session) async throws {
        let devices = ImportDevices(store: session.store, now: session.clock.now)
        let result = try await Interruptible.run(
            "the devices read so far are stored; run the same command again, and they count as unchanged"
        ) {
            let meter = ImportMeter()
            return try await devices.run(
                path: file, format: format, rejects: rejects, replacesAttributes: replaceAttributes, isDryRun: dryRun,
                progress: { meter.show(devices: $0) },
                ordering: { Console.note("all \($0.grouped) devices are read; building the indexes of a first import") }
            )
        }
        if !dryRun { try await devices.record(path: file, Self.text(result), by: session.actor) }
        for odd in result.oddValues ?? [] { Console.note("warning: \(odd.summary)") }
        Console.print(json ? try ResultJSON.text(result) : Self.text(result))
        if result.rejected > 0 { throw ExitStatus.invalidData.exitCode }
    }

    private static func text(_ result: ImportResult) -> String {
        var text =
            (result.dryRun ? "nothing was changed; an import would give " : "")
            + "\(result.read.counted("line")): \(result.inserted.grouped) new, \(result.updated.grouped) updated, "
            + "\(result.unchanged.grouped) unchanged, \(result.tokensReplaced.grouped) with a new token, \(result.merged.grouped) merged, "
            + "\(result.rejected.grouped) rejected"
        if let path = result.rejectsFile { text += "; see \(path)" }
        return text
    }
}

/// Shows the number of devices read so far and the rate, at most once a second.
private final class ImportMeter {
    private let clock = ContinuousClock()
    private let start: ContinuousClock.Instant
    private var shown: ContinuousClock.Instant

    init() {
        start = clock.now
        shown = start
    }

    func show(devices: Int) {
        let now = clock.now
        guard now - shown > .seconds(1) else { return }
        shown = now
        let rate = Int(Double(devices) / (now - start).inSeconds)
        let line = "\(devices.counted("device")), \(rate.grouped)/s"
        Console.isTerminal ? Console.progress(line) : Console.note(line)
    }
}

extension ImportFormat: ExpressibleByArgument {}
