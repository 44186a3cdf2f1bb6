import ArgumentParser
import CampaignFiles
import Foundation
import Model
import Store

struct DevicesImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Add and refresh devices from CSV or JSON Lines.",
        discussion: """
            Only token, environment and topic are required. A known installation gets its new token and keeps its history. \
            Bad lines go to the rejects file with line number and reason; good lines are kept. \
            An import that was interrupted is given again: what is there already counts as unchanged.
            """)

    private static let batchMax = 20_000

    @OptionGroup var settings: Settings
    @Argument(
        help: "A file with a header line (CSV) or one object a line (JSON Lines); - for standard input.",
        completion: .file())
    var file: String
    @Option(help: "csv or jsonl (default: by the file's first character).") var format: ImportFormat?
    @Option(help: "Where bad lines go (default: FILE.rejects.csv).") var rejects: String?
    @Flag(help: "Read and check everything and say what would change, but change nothing.") var dryRun = false
    @Flag(help: "Print the result as JSON.") var json = false

    struct Result: Encodable {
        var dryRun: Bool
        var read = 0
        var inserted = 0
        var updated = 0
        var unchanged = 0
        var tokensReplaced = 0
        var merged = 0
        var rejected = 0
        var rejectsFile: String?

        var sum: Int { inserted + updated + unchanged + tokensReplaced + merged }
    }

    func run() async throws {
        let store = try settings.store(try settings.configuration())
        let result = try await Interruptible.run(
            "the devices read so far are in the store; give the same command again, they will count as unchanged"
        ) { try await load(into: store) }
        if !dryRun {
            try await store.recordEvent(
                kind: .devicesImported, run: nil, actor: ThisProcess.actor, detail: "\(file): \(Self.text(result))",
                now: Timestamp(Date()))
        }
        Console.print(json ? try JSONOutput.text(result) : Self.text(result))
        if result.rejected > 0 { throw ExitStatus.invalidData.exitCode }
    }

    private func load(into store: any AllRoles) async throws -> Result {
        let rejectsPath = rejects ?? (file == "-" ? "stdin.rejects.csv" : file + ".rejects.csv")
        let reader = DeviceFileReader(path: file, format: format, rejectsPath: rejectsPath)
        let meter = ImportMeter()
        let isDryRun = dryRun
        var result = Result(dryRun: dryRun)
        let lines = try await reader.forEachBatch(size: Self.batchMax) { records in
            let counts = try await store.importDevices(records, now: Timestamp(Date()), dryRun: isDryRun)
            result.inserted += counts.inserted
            result.updated += counts.updated
            result.unchanged += counts.unchanged
            result.tokensReplaced += counts.tokensReplaced
            result.merged += counts.merged
            meter.show(devices: result.sum)
            try Task.checkCancellation()
        }
        result.read = lines.read
        result.rejected = lines.rejected
        result.rejectsFile = lines.rejected > 0 ? rejectsPath : nil
        return result
    }

    private static func text(_ result: Result) -> String {
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
