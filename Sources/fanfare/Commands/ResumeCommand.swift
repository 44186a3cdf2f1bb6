import ArgumentParser
import Model
import Store
import Sending
import Daemon

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
        let configuration = try settings.configuration()
        let store = try settings.store(configuration)
        try await Abandoned.recover(in: store)
        let found = try await RunLookup.run(run, in: store)
        let app = try configuration.app(for: found.definition.campaign.topic)
        let resumed = try await RunChange(store: store).make(found, to: .running, reason: nil)
        if noSend { return Console.print(try RunStatus(resumed).output(json: json)) }
        let logger = log.logger
        let sender = try Pipeline.Sender(app, logger: logger)
        let courier = try await WebhookDispatcher.registered(configuration, store, logger: logger)
        let handling = RunHandling(store: store, sender: sender, logger: logger)
        guard let end = try await handling.execute(resumed) else { return }
        let report = try await store.report(resumed.id)
        Console.print(json ? try JSONOutput.text(ReportJSON(report)) : ReportText(report: report).text)
        try await courier.drain(within: WebhookDispatcher.lastWait)
        try RunCommand.leave(resumed, after: end)
    }
}
