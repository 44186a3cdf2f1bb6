import ArgumentParser
import Model
import Store

struct PauseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Stop a run, to go on with it later.",
        discussion: """
            At most 2 seconds later the process that sends it starts no more requests; it records the answers on their \
            way and exits with 75. Nothing but `fanfare resume` lets the run go on: not a timer, nor `fanfare run` for \
            the same occurrence.
            """)

    @OptionGroup var settings: Settings
    @Argument(help: RunLookup.help) var run: String
    @Option(help: "Why, for whoever looks at it later.") var reason: String?
    @Flag(help: "Print the run as JSON.") var json = false

    func run() async throws {
        let store = try settings.store(try settings.configuration())
        try await Abandoned.recover(in: store)
        let found = try await RunLookup.run(run, in: store)
        let paused = try await RunChange(store: store).make(found, to: .paused, reason: reason)
        Console.print(try RunStatus(paused).output(json: json))
    }
}
