import ArgumentParser
import Foundation
import Model
import Store
import Daemon

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
        let store = try settings.store(try settings.configuration())
        try await Abandoned.recover(in: store)
        if watch {
            var found: Run?
            if let run { found = try await RunLookup.run(run, in: store) }
            return try await StatusWatch(
                store: store, run: found?.id, limit: limit, interval: WrittenDuration.parse(interval) ?? .seconds(1)
            ).show()
        }
        if let run {
            let found = try await RunLookup.run(run, in: store)
            return Console.print(try RunStatus(found).output(json: json))
        }
        let daemon = try await store.daemon(now: Timestamp(Date()), staleAfter: OwnerLiveness.staleAfter)
        let list = RunList(runs: try await store.runs(limit: limit), daemon: daemon)
        Console.print(json ? try JSONOutput.text(list.json) : list.text)
    }
}
