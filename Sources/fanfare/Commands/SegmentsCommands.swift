import ArgumentParser
import Campaigns
import Foundation
import Model
import Store

struct SegmentsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "segments", abstract: "Import, define, delete and show named sets of devices.",
        subcommands: [
            SegmentsImportCommand.self, SegmentsDefineCommand.self, SegmentsListCommand.self, SegmentsShowCommand.self,
            SegmentsDeleteCommand.self,
        ])
}

struct SegmentsListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List segments with their sizes.")

    @OptionGroup var settings: Settings
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session(.reading)
        let entries = try await session.useCases.segments.list(now: session.now)
        if json { return Console.print(try ResultJSON.text(entries)) }
        if entries.isEmpty {
            return Console.print(
                "no segments; add one with `fanfare segments import NAME FILE` or `fanfare segments define NAME EXPRESSION`"
            )
        }
        for entry in entries {
            Console.print(
                "\(entry.name.padded(to: 32)) \(entry.count.grouped.rightAligned(to: 12))  \(entry.updatedAt)"
                    + (entry.expression.map { "  \($0)" } ?? ""))
        }
    }
}

struct SegmentsDefineCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "define", abstract: "Name an audience expression.",
        discussion: """
            Such a segment is dynamic: it holds the devices that the expression selects when a run starts. It may name \
            other segments. locale in ("zh-Hant") selects the devices that a text in zh-Hant is for, such as those set to zh-TW. \
            attribute("plan") = "pro" compares an imported attribute, and also allows !=, in and is null.

              fanfare segments define lapsed 'last_seen within 90 days and not last_seen within 30 days'
            """)

    @OptionGroup var settings: Settings
    @Argument(help: "The segment's name.") var name: String
    @Argument(help: "An audience expression, in quotes.") var expression: String
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session()
        let summary = try await session.useCases.segments.define(
            name, expression: expression, by: session.actor, now: session.now)
        Console.print(
            json
                ? try ResultJSON.text(SegmentResult(summary))
                : "segment \(name): \(summary.count.devices) now")
    }
}

struct SegmentsShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show a segment: its size now, where it comes from, and some of its devices.")

    @OptionGroup var settings: Settings
    @Argument(help: "The segment's name.") var name: String
    @Option(help: "The number of devices to show.") var sample = 5
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        guard (0...1000).contains(sample) else { throw ValidationError("--sample: 0 to 1000") }
    }

    func run() async throws {
        let session = try await settings.session(.reading)
        let detail = try await session.useCases.segments.show(name, sampleMax: sample, now: session.now)
        if json { return Console.print(try ResultJSON.text(SegmentDetailResult(detail))) }
        var page = Page()
        page.row("Segment", detail.summary.name)
        switch detail.summary.kind {
        case .static:
            page.row("Members", "\(detail.summary.count.devices), imported \(detail.summary.updatedAt.iso8601)")
        case .dynamic(let source):
            page.row("Members", "\(detail.summary.count.devices) now")
            page.row("Expression", "\(source)", "defined \(detail.summary.updatedAt.iso8601)")
        }
        page.row("Sample", detail.sample.map(DeviceText.line))
        Console.print(page.text)
    }
}

struct SegmentsImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Set a segment's members from a file.",
        discussion: """
            The file is CSV with one column named installation_id, user_id or token, or one installation id per line. \
            The segment changes as a whole or not at all.
            """)

    @OptionGroup var settings: Settings
    @Argument(help: "The segment's name.") var name: String
    @Argument(help: "A file of members; - for standard input.", completion: .file()) var file: String
    @Flag(help: "Replace the members with those of the file (default), add them, or remove them.")
    var mode = SegmentImportMode.replace
    @Option(help: "Only devices of this topic.") var topic: String?
    @Option(help: "The file for bad lines (default: FILE.rejects.csv).") var rejects: String?
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session(.making)
        let segments = session.useCases.segments
        let result = try await Interruptible.run("segment \(name) is unchanged; run the same command again") {
            try await segments.importMembers(
                of: name, path: file, mode: mode, topic: topic, rejects: rejects, by: session.actor,
                now: session.clock.now)
        }
        Console.print(json ? try ResultJSON.text(result) : text(result))
        if result.rejected > 0 { throw ExitStatus.invalidData.exitCode }
    }

    private func text(_ result: SegmentImportResult) -> String {
        "segment \(result.segment): \(result.summary)"
            + (result.rejected > 0 ? "; see \(RejectsPath.path(for: file, named: rejects))" : "")
    }
}

struct SegmentsDeleteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete a segment that nothing uses.",
        discussion: """
            Its devices are not deleted. A segment is in use while a campaign, the seeds of a stage, another segment, \
            test_devices or a run that has not chosen its devices yet names it; the command then changes nothing and \
            names them.
            """)

    @OptionGroup var settings: Settings
    @Argument(help: "The segment's name.") var name: String
    @Flag(name: .shortAndLong, help: "Do not ask for confirmation.") var yes = false

    func run() async throws {
        let session = try await settings.session()
        let segments = session.useCases.segments
        let summary = try await segments.summary(name, now: session.now)
        let deletion = "segment \(name) with its \(summary.expression == nil ? summary.count.devices : "expression")"
        let users = try await session.useCases.files.users(ofSegment: name)
        if users.isEmpty { try confirm(deletion) }
        try await segments.remove(name, usedBy: users, by: session.actor, now: session.now)
        Console.print("deleted \(deletion)")
    }

    private func confirm(_ deletion: String) throws {
        if yes { return }
        guard Console.isInteractive else {
            throw Failure(.refused, "this would delete \(deletion); nothing was deleted; give --yes to delete")
        }
        guard Console.confirms("Delete \(deletion)?") else { throw Failure(.refused, "nothing was deleted") }
    }
}

extension SegmentImportMode: EnumerableFlag {
    static func help(for value: SegmentImportMode) -> ArgumentHelp? {
        switch value {
        case .replace: "Replace the members with the listed devices."
        case .add: "Add the listed devices to the members."
        case .remove: "Remove the listed devices."
        }
    }
}
