import ArgumentParser
import Campaigns
import Daemon
import Foundation
import Model
import Store

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "List the latest runs with their states and counts, or show one.")

    @OptionGroup var settings: Settings
    @Argument(help: RunLookup.help, completion: .custom(CampaignNames.completions)) var run: String?
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
        let session = try await settings.session(.reading)
        var found: Run?
        if let run { found = try await session.run(run) } else { try await session.recoverAbandoned() }
        if watch {
            return try await StatusWatch(
                runs: session.runs, run: found?.id, limit: limit,
                interval: WrittenDuration.parse(interval) ?? .seconds(1)
            ).show()
        }
        await session.noteStops()
        if let found {
            let status = RunStatus(
                try await session.runs.inDetail(found), now: session.now,
                clockStep: try await session.runs.clockStep())
            return Console.print(try status.output(json: json))
        }
        let overview = try await session.runs.overview(limit: limit)
        let changes = try await session.useCases.files.changes()
        var result = overview.result
        result.pendingChanges = changes.isEmpty ? nil : changes
        Console.print(json ? try ResultJSON.text(result) : RunList(overview, now: session.now).text)
        session.noteChanges(changes)
        try await session.noteWaitingPlans()
    }
}

struct PauseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Stop a run, to go on with it later.",
        discussion: """
            At most 2 seconds later the process that sends it starts no more requests; it records the answers on their \
            way and exits with 75. Nothing but `fanfare resume` lets the run go on: not a timer, nor `fanfare run` for \
            the same occurrence.
            """)

    @OptionGroup var settings: Settings
    @Argument(help: RunLookup.help, completion: .custom(CampaignNames.completions)) var run: String
    @Option(help: "The reason, for the audit log.") var reason: String?
    @Flag(help: "Print the run as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session()
        let changed = try await session.useCases.control.pause(session.run(run), reason: reason, by: session.actor)
        try RunStatus.show(changed, session.runs, json: json)
    }
}

struct ResumeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Go on with a paused run, and print its report.",
        discussion: """
            Nothing else lets a run go on that a person, a breaker, its lateness or the volume brake has stopped. It is \
            sent by the daemon if there is one, otherwise by this command, with the exit codes of `fanfare run`, as it was \
            frozen when it was created. What has expired by now is suppressed.
            """)

    @OptionGroup var settings: Settings
    @Argument(help: RunLookup.help, completion: .custom(CampaignNames.completions)) var run: String
    @Option(help: "Why, for the record.") var reason: String?
    @OptionGroup var log: LogOptions
    @Flag(help: "Only let it go on: a daemon, or `fanfare run` for the same occurrence, sends it.") var noSend = false
    @Flag(help: "Print the report as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session()
        let found = try await session.run(run)
        try session.store.restored?.requireSeen(found.id)
        let app = try session.configuration.app(for: found.definition.campaign.topic)
        guard !noSend else {
            let changed = try await session.useCases.control.resume(found, reason: reason, by: session.actor)
            return try RunStatus.show(changed, session.runs, json: json)
        }
        var sending = try await CommandSender.reporting(session, log)
        try await sending.prepareUnlessServed(app)
        let changed = try await session.useCases.control.resume(found, reason: reason, by: session.actor)
        RunStatus.noteBusyOwner(changed, session.runs)
        try await sending.execute(changed.run, wait: nil, json: json)
    }
}

struct CancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "End a run for good: what was not sent yet is suppressed (cancelled).",
        discussion:
            "At most 2 seconds later the process that sends it starts no more requests; it records the answers on their way."
    )

    @OptionGroup var settings: Settings
    @Argument(help: RunLookup.help, completion: .custom(CampaignNames.completions)) var run: String
    @Option(help: "The reason, for the audit log.") var reason: String?
    @Flag(help: "Print the run as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session()
        let changed = try await session.useCases.control.cancel(session.run(run), reason: reason, by: session.actor)
        try RunStatus.show(changed, session.runs, json: json)
    }
}

struct CorrectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "correct", abstract: "Put other words in the place of what a run has sent.",
        discussion: """
            It goes to exactly those whom the run reached or may have reached, to the last of them first, with the same \
            collapse id: what still is on a screen is replaced, what waits for a phone that is off does not come any more. \
            What was read cannot be unread. The campaign's `correction` is the template; --template names another one. \
            Neither stages nor quiet hours hold it back, and no signatures: where a run of so many devices needs them \
            (`approvals`), only who may break the glass sends other words than the prepared ones, with --reason. It is a run of its own: `fanfare report` shows it, and the report of \
            the one that it puts right names it.
            """)

    @OptionGroup var order: CorrectionArguments
    @Option(help: "The template with the right words (default: the campaign's `correction`).") var template: String?
    @Option(help: "Why, where other words than the prepared ones go to more than need signatures; is recorded.")
    var reason: String?
    @OptionGroup var variables: VariableArguments

    func run() async throws {
        try await order.start(
            CorrectRun.Order(
                .replace, template: template, variables: try variables.values(), isAgain: order.again, reason: reason))
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

/// The arguments and the execution that both correction commands share.
struct CorrectionArguments: ParsableArguments {
    @OptionGroup var settings: Settings
    @Argument(help: RunLookup.help, completion: .custom(CampaignNames.completions)) var run: String
    @Flag(help: "Once more, where one went already.") var again = false
    @OptionGroup var log: LogOptions
    @Flag var waiting: Waiting?
    @Flag(name: .shortAndLong, help: "Do not ask for confirmation on a terminal.") var yes = false
    @Flag(help: "Print the report as JSON.") var json = false

    private var wait: Bool? { waiting.map { $0 == .wait } }

    func start(_ order: CorrectRun.Order) async throws {
        let session = try await settings.session()
        try await session.recoverAbandoned()
        let wrong = try await session.run(run)
        let correcting = session.useCases.correcting
        let prepared = try await correcting.prepare(wrong, order, by: session.actor, now: session.now)
        for warning in prepared.warnings { Console.note("warning: \(warning)") }
        try confirm(prepared, wrong)
        if wait == false { try await ExecuteRun.requireDaemon(session.runs) }
        var sending = try await CommandSender.reporting(session, log)
        try await sending.prepareUnlessServed(
            session.configuration.app(for: prepared.definition.campaign.topic))
        let started = try await correcting.start(prepared, by: session.actor, now: session.clock.now())
        let what =
            order.kind == .recall ? "takes run \(wrong.id) off the screens" : "puts run \(wrong.id) right"
        Console.note("run \(started.id) \(what), for " + Console.warned(prepared.sentTo, on: .notes))
        try await session.warnOfEmergencyOverride(started)
        try await sending.execute(started, wait: wait, json: json)
    }

    private func confirm(_ prepared: CorrectRun.Prepared, _ wrong: Run) throws {
        guard !yes, Console.isInteractive else { return }
        let what = "\(prepared.definition.campaign.name) of run \(wrong.id)"
        guard Console.confirms("Send \(what) to \(prepared.sentTo)?") else {
            throw Failure(.refused, "not sent")
        }
    }
}
