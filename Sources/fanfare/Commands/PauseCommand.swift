import ArgumentParser
import Model
import Campaigns

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
        let session = try settings.session()
        let changed = try await session.control.pause(session.run(run), reason: reason, by: session.actor)
        try RunStatus.show(changed, json: json)
    }
}
