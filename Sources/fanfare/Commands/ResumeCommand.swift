import ArgumentParser
import Model
import Store
import Sending
import Daemon
import Campaigns

struct ResumeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Go on with a paused run, and print its report.",
        discussion: """
            It is sent by the daemon if there is one, otherwise by this command, with the exit codes of `fanfare run`, as it was frozen when it was created.
            """)

    @OptionGroup var settings: Settings
    @Argument(help: RunLookup.help) var run: String
    @OptionGroup var log: LogOptions
    @Flag(help: "Only let it go on: a daemon, or `fanfare run` for the same occurrence, sends it.") var noSend = false
    @Flag(help: "Print the report as JSON.") var json = false

    func run() async throws {
        let session = try settings.session()
        let found = try await session.run(run)
        let sending = try SendingHere(session, topic: found.definition.campaign.topic, log.logger)
        let changed = try await session.control.resume(found, by: session.actor)
        if noSend { return try RunStatus.show(changed, json: json) }
        try await sending.execute(changed.run, wait: nil, json: json)
    }
}
