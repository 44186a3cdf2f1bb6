import ArgumentParser
import Model
import Campaigns

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
        let session = try settings.session()
        let changed = try await session.control.cancel(session.run(run), reason: reason, by: session.actor)
        try RunStatus.show(changed, json: json)
    }
}
