import ArgumentParser
import CampaignFiles
import Campaigns
import Foundation
import Model

struct DevicesImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Add and refresh devices from CSV or JSON Lines.",
        discussion: """
            Only token, environment and topic are required. A known installation gets its new token and keeps its history. \
            Bad lines go to the rejects file with line number and reason; good lines are kept. \
            An import that was interrupted is given again: what is there already counts as unchanged.
            """)

    @OptionGroup var settings: Settings
    @Argument(
        help: "A file with a header line (CSV) or one object a line (JSON Lines); - for standard input.",
        completion: .file())
    var file: String
    @Option(help: "csv or jsonl (default: by the file's first character).") var format: ImportFormat?
    @Option(help: "Where bad lines go (default: FILE.rejects.csv).") var rejects: String?
    @Flag(help: "Read and check everything and say what would change, but change nothing.") var dryRun = false
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let session = try settings.session()
        let devices = ImportDevices(store: session.store) { Timestamp(Date()) }
        let result = try await Interruptible.run(
            "the devices read so far are in the store; give the same command again, they will count as unchanged"
        ) {
            let meter = ImportMeter()
            return try await devices.run(path: file, format: format, rejects: rejects, isDryRun: dryRun) {
                meter.show(devices: $0)
            }
        }
        if !dryRun { try await devices.record(path: file, Self.text(result), by: session.actor) }
        Console.print(json ? try ResultJSON.text(result) : Self.text(result))
        if result.rejected > 0 { throw ExitStatus.invalidData.exitCode }
    }

    private static func text(_ result: ImportResult) -> String {
        var text =
            (result.dryRun ? "nothing was changed; an import would be " : "")
            + "\(result.read.grouped) lines: \(result.inserted.grouped) new, \(result.updated.grouped) updated, "
            + "\(result.unchanged.grouped) unchanged, \(result.tokensReplaced.grouped) with a new token, \(result.merged.grouped) merged, "
            + "\(result.rejected.grouped) rejected"
        if let path = result.rejectsFile { text += "; see \(path)" }
        return text
    }
}

/// A line a second while a long file is read.
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
        let line = "\(devices.grouped) devices, \(rate.grouped)/s"
        Console.isTerminal ? Console.progress(line) : Console.note(line)
    }
}

extension ImportFormat: ExpressibleByArgument {}
