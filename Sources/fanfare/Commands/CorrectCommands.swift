import ArgumentParser
import Campaigns
import Daemon
import Model
import Sending
import Store

struct CorrectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "correct", abstract: "Put other words in the place of what a run has sent.",
        discussion: """
            It goes to exactly those whom the run reached or may have reached, to the last of them first, with the same \
            collapse id: what still is on a screen is replaced, what waits for a phone that is off does not come any more. \
            What was read cannot be unread. The campaign's `correction` is the template; --template names another one. \
            Neither stages nor quiet hours hold it back. It is a run of its own: `fanfare report` shows it, and the report of \
            the one that it puts right names it.
            """)

    @OptionGroup var order: CorrectionArguments
    @Option(help: "The template with the right words (default: the campaign's `correction`).") var template: String?
    @OptionGroup var variables: VariableArguments

    func run() async throws {
        try await order.start(
            CorrectRun.Order(
                .replace, template: template, variables: try variables.values(), isAgain: order.again))
    }
}

struct RecallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recall", abstract: "Take what a run has sent off the screens, where the app knows how.",
        discussion: """
            A background push to exactly those whom the run reached or may have reached: {"aps":{"content-available":1},\
            "recall":"ID"}, upon which the app calls removeDeliveredNotifications(withIdentifiers: ["ID"]). Apple gives no \
            promise that a background push arrives, and each counts against the device's silent budget; \
            `fanfare correct` needs nothing of the app.
            """)

    @OptionGroup var order: CorrectionArguments

    func run() async throws {
        try await order.start(CorrectRun.Order(.recall, isAgain: order.again))
    }
}

/// What both take, and how both go on.
struct CorrectionArguments: ParsableArguments {
    @OptionGroup var settings: Settings
    @Argument(help: RunLookup.help, completion: .custom(CampaignNames.completions)) var run: String
    @Flag(help: "Once more, where one went already.") var again = false
    @OptionGroup var log: LogOptions
    @Flag(
        inversion: .prefixedNo,
        help: "Wait for another process that has it; or hand it to the daemon and leave at once.")
    var wait: Bool?
    @Flag(name: .shortAndLong, help: "Do not ask for confirmation on a terminal.") var yes = false
    @Flag(help: "Print the report as JSON.") var json = false

    func start(_ order: CorrectRun.Order) async throws {
        let session = try await settings.session()
        try await session.recoverAbandoned()
        let wrong = try await session.run(run)
        let correcting = CorrectRun(store: session.store, templates: session.configuration.templates)
        let prepared = try await correcting.prepare(wrong, order, now: session.now)
        try await session.runs.requireNoStop(campaign: prepared.definition.campaign.name)
        for warning in prepared.warnings { Console.note("warning: \(warning)") }
        try confirm(prepared, wrong)
        if wait == false { try await ExecuteRun.requireDaemon(session.runs) }
        try await session.requirePostUnlessServed()
        let logger = log.logger
        let app = try session.configuration.app(for: prepared.definition.campaign.topic)
        let sender = try SendingSetup(app, ProviderTokens(session, logger: logger), logger: logger)
        let webhooks = try await WebhookDispatcher.registered(session, logger: logger)
        let started = try await correcting.start(prepared, by: session.actor, now: session.clock.now())
        Console.note("run \(started.id) puts run \(wrong.id) right, for \(prepared.devices.grouped) devices")
        try await SendingHere(session, logger) { sender }.execute(started, webhooks, wait: wait, json: json)
    }

    private func confirm(_ prepared: CorrectRun.Prepared, _ wrong: Run) throws {
        guard !yes, Console.isInteractive else { return }
        let what = "\(prepared.definition.campaign.name) of run \(wrong.id)"
        guard Console.confirms("Send \(what) to \(prepared.devices.grouped) devices?") else {
            throw Failure(.refused, "not sent")
        }
    }
}
