import ArgumentParser
import Model
import Store

struct CancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "End a run for good: what was not sent yet is suppressed (cancelled).",
        discussion:
            "At most 2 seconds later the process that sends it starts no more requests; it records the answers on their way."
    )

    @OptionGroup var settings: Settings
    @Argument(help: RunLookup.help) var run: String
    @Option(help: "Why, for whoever looks at it later.") var reason: String?
    @Flag(help: "Print the run as JSON.") var json = false

    func run() async throws {
        let store = try settings.store(try settings.configuration())
        try await Abandoned.recover(in: store)
        let found = try await RunLookup.run(run, in: store)
        let cancelled = try await RunChange(store: store).make(found, to: .cancelled, reason: reason)
        Console.print(try RunStatus(cancelled).output(json: json))
    }
}
