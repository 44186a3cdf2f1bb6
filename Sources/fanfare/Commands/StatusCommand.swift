import ArgumentParser
import Foundation
import Model
import Store
import Daemon
import Campaigns

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "List the latest runs with their states and counts, or show one.")

    @OptionGroup var settings: Settings
    @Argument(help: RunLookup.help) var run: String?
    @Option(help: "How many runs to list, newest first.") var limit = 20
    @Flag(help: "Go on showing them, until the run is over or Ctrl-C.") var watch = false
    @Option(help: "How often to look with --watch: 1s, 500ms.") var interval = "1s"
    @Flag(help: "Print as JSON.") var json = false

    func validate() throws {
        guard limit > 0 else { throw ValidationError("--limit: at least 1") }
        if watch, json { throw ValidationError("--watch is for people: give it or --json") }
        guard let interval = WrittenDuration.parse(interval), interval >= .milliseconds(100) else {
            throw ValidationError("--interval \(interval): write a duration of at least 100ms, such as 1s")
        }
    }

    func run() async throws {
        let session = try settings.session()
        var found: Run?
        if let run { found = try await session.run(run) } else { try await session.recoverAbandoned() }
        if watch {
            return try await StatusWatch(
                runs: session.runs, run: found?.id, limit: limit,
                interval: WrittenDuration.parse(interval) ?? .seconds(1)
            ).show()
        }
        if let found { return Console.print(try RunStatus(found).output(json: json)) }
        let overview = try await session.runs.overview(limit: limit)
        Console.print(json ? try JSONOutput.text(overview.result) : RunList(overview).text)
    }
}
