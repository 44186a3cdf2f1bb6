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
    @Option(help: "The number of runs to list, newest first.") var limit = 20
    @Flag(help: "Update the display until the run is over or you press Ctrl-C.") var watch = false
    @Option(help: "The interval of --watch, such as 1s or 500ms.") var interval = "1s"
    @Flag(help: "Print as JSON.") var json = false

    func validate() throws {
        guard limit > 0 else { throw ValidationError("--limit must be at least 1") }
        if watch, json { throw ValidationError("--watch and --json exclude each other: give only one") }
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
                try await session.runs.inDetail(found), try await session.runs.daemon(), now: session.now,
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
        commandName: "pause", abstract: "Pause a run, to resume it later.",
        discussion: """
            Within 2 seconds the run's sender starts no more requests; it records the responses still in \
            flight and exits with 75. Only `fanfare resume` continues the run, not a timer or `fanfare run` for \
            the same occurrence.
            """)

    @OptionGroup var settings: Settings
    @Argument(help: RunLookup.help, completion: .custom(CampaignNames.completions)) var run: String
    @Option(help: "The reason, for the audit log.") var reason: String?
    @Flag(help: "Print the run as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session()
        let changed = try await session.useCases.control.pause(session.run(run), reason: reason, by: session.actor)
        try await RunStatus.show(changed, session.runs, json: json)
    }
}

struct ResumeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Resume a paused run, and print its report.",
        discussion: """
            Only this command continues a run that a person, a breaker, its lateness or the volume brake paused. A run \
            of a restored backup that waited for a person waits again after the first `resume`, which confirms that \
            the store lacks what was sent since the backup. The run is sent by the daemon if there is one, otherwise by this command, with the exit codes of `fanfare \
            run`. It is sent as it was frozen at its creation. Expired deliveries are suppressed.
            """)

    @OptionGroup var settings: Settings
    @Argument(help: RunLookup.help, completion: .custom(CampaignNames.completions)) var run: String
    @Option(help: "The reason, for the audit log.") var reason: String?
    @OptionGroup var log: LogOptions
    @Flag(help: "Only mark the run as resumed: a daemon, or `fanfare run` for the same occurrence, sends it.")
    var noSend = false
    @Flag(help: "Print the report as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session()
        let found = try await session.run(run)
        try session.store.restored?.requireSeen(found.id)
        let app = try session.configuration.app(for: found.definition.campaign.topic)
        guard !noSend else {
            let changed = try await session.useCases.control.resume(found, reason: reason, by: session.actor)
            return try await RunStatus.show(changed, session.runs, json: json)
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
        commandName: "cancel",
        abstract: "Cancel a run permanently: deliveries not sent yet are suppressed (cancelled).",
        discussion:
            "Within 2 seconds the run's sender starts no more requests; it records the responses still in flight."
    )

    @OptionGroup var settings: Settings
    @Argument(help: RunLookup.help, completion: .custom(CampaignNames.completions)) var run: String
    @Option(help: "The reason, for the audit log.") var reason: String?
    @Flag(help: "Print the run as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session()
        let changed = try await session.useCases.control.cancel(session.run(run), reason: reason, by: session.actor)
        try await RunStatus.show(changed, session.runs, json: json)
    }
}

struct CorrectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "correct", abstract: "Replace the text that a run has sent.",
        discussion: """
            The correction goes to exactly the devices that the run reached or may have reached, the last device first, with the \
            same collapse id. It replaces notifications on screens, and pushes that still wait for a phone that is \
            off. Notifications that were read stay read. The template is --template, else the campaign's `correction`, else \
            the run's own template, which must have changed since the run, or get other values with --var. \
            Stages and quiet hours do not delay it. If a run of this size needs signatures (`approvals`), \
            a text other than the prepared one needs them, too: --for-approval requests them, and the same command sends \
            it once it is signed. A person allowed by `break_glass` may send it without them, with --reason. The \
            correction is a run of its own: `fanfare report` shows it, and the report of the corrected run names it.
            """)

    @OptionGroup var order: CorrectionArguments
    @Option(help: "The template with the corrected texts (default: the campaign's `correction`, else the run's own).")
    var template: String?
    @Option(help: "The reason for sending a text other than the prepared one without required signatures; recorded.")
    var reason: String?
    @Flag(help: "Request the signatures that the correction needs, and send nothing.") var forApproval = false
    @Option(help: "What to tell the approvers; with --for-approval.") var note: String?
    @OptionGroup var variables: VariableArguments

    func validate() throws {
        if note != nil, !forApproval { throw ValidationError("--note needs --for-approval") }
    }

    func run() async throws {
        let correction = CorrectRun.Order(
            .replace, template: template, variables: try variables.values(), isAgain: order.again, reason: reason)
        if forApproval { return try await order.ask(correction, note: note) }
        try await order.start(correction)
    }
}

struct RecallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recall", abstract: "Remove a run's notifications from the screens, if the app supports it.",
        discussion: """
            Sends a background push to exactly the devices that the run reached or may have reached: \
            {"aps":{"content-available":1},"recall":"ID"}, and the app then calls \
            removeDeliveredNotifications(withIdentifiers: ["ID"]). Apple does not guarantee that a background push \
            arrives, and limits them for each device; a recall takes no slot of the silent budget. \
            `fanfare correct` works without support in the app.
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
    @Flag(help: "Send again, even if one was sent before.") var again = false
    @OptionGroup var log: LogOptions
    @Flag var waiting: Waiting?
    @Flag(name: .shortAndLong, help: "Do not ask for confirmation on a terminal.") var yes = false
    @Flag(help: "Print the report as JSON.") var json = false

    private var wait: Bool? { waiting.map { $0 == .wait } }

    /// Requests approval of a correction, and prints the signatures that it needs.
    func ask(_ order: CorrectRun.Order, note: String?) async throws {
        let session = try await settings.session()
        let correcting = session.useCases.correcting
        let prepared = try await correcting.prepare(
            session.run(run), order, isForApproval: true, by: session.actor, now: session.now)
        for warning in prepared.warnings { Console.note("warning: \(warning)") }
        let asked = try await correcting.ask(prepared, note: note, by: session.actor, now: session.now)
        Console.print(json ? try ResultJSON.text(asked) : ApprovalText.text(asked))
    }

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
            order.kind == .recall ? "removes run \(wrong.id) from the screens" : "corrects run \(wrong.id)"
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
