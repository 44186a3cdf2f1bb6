import ArgumentParser
import CampaignFiles
import Campaigns
import Foundation
import Model
import Store

struct EventsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events", abstract: "Import what apps reported about pushes and people.",
        subcommands: [EventsImportCommand.self])
}

struct EventsImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Record the reports in a file: opens, actions, conversions.",
        discussion: """
            For teams whose app already has analytics. The file is CSV with the columns id, type, ref, installation_id, \
            topic, name, value, at and sent_at, or JSON Lines with these fields. A report about a push needs ref; the others \
            need installation_id and topic. Importing a file again changes nothing.
            """)

    @OptionGroup var settings: Settings
    @Argument(help: "A file of reports; - for standard input.", completion: .file()) var file: String
    @Option(help: "The file for rejected lines (default: FILE.rejects.csv).") var rejects: String?
    @Flag(help: "Print the result as JSON.") var json = false

    private static let shownMax = 5

    func run() async throws {
        let session = try await settings.session()
        let feedback = session.useCases.feedback
        let path = RejectsPath.path(for: file, named: rejects)
        let (result, counts) = try await Interruptible.run(
            "run the same command again; recorded reports are not counted twice"
        ) {
            try await feedback.importFile(file, rejectsPath: path, by: session.actor)
        }
        Console.print(json ? try ResultJSON.text(result) : Self.text(result, counts, path))
        if result.rejectedCount > 0 { throw ExitStatus.invalidData.exitCode }
    }

    private static func text(_ result: FeedbackResult, _ counts: ReadCounts, _ path: String) -> String {
        var lines = [
            "\(counts.read.grouped) reports: \(result.recorded.grouped) recorded, \(result.repeated.grouped) recorded "
                + "before, \(result.rejectedCount.grouped) rejected"
        ]
        lines += result.rejected.prefix(shownMax).map { "line \($0.line): \($0.reason)" }
        let more = result.rejectedCount - shownMax
        if more > 0 { lines.append("\(more.counted("more line was", "more lines were")) rejected") }
        if result.rejectedCount > 0 { lines.append("the rejected lines are in \(path)") }
        return lines.joined(separator: "\n")
    }
}
