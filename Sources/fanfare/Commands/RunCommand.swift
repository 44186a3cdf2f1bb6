import ArgumentParser
import Foundation
import Logging
import Model
import Store
import Campaigns
import Sending
import Daemon

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Send a campaign now, and print its report.",
        discussion: """
            With --occurrence the same command may be given twice, by cron, a timer and a person: there is one run, and a \
            run that was cut short goes on where it stood, unless somebody paused it. An occurrence of the campaign's \
            schedule, such as 2026-12-01T09:00, is sent as the daemon would. While `fanfare serve` is running it sends the \
            run, and this command follows it. Ctrl-C stops a run in good order; a second Ctrl-C at once, which leaves what \
            is on its way in doubt until the next start.

            `fanfare run --due` does what the daemon would do now for all campaigns, and leaves: fired every few minutes by \
            a timer, it takes the daemon's place.
            """)

    @OptionGroup var settings: Settings

    @Argument(
        help: "The campaign's name, or the path of its file; left out with --due.",
        completion: .custom(CampaignNames.completions))
    var campaign: String?

    @OptionGroup var variables: VariableArguments
    @Flag(help: "Start what the schedules say, go on with what was left, and leave.") var due = false

    @Option(
        help: "Names this occurrence; one that was run before is not sent again (default: the time, so always new).")
    var occurrence: String?

    @Option(help: "The hash that `fanfare plan` printed: send just that, or exit 3 and say what has changed.")
    var plan: PlanToken?

    @Option(
        help: "Pass over a guard of the campaign: max_reach, min_reach or max_growth; may be repeated; is recorded.")
    var overrideGuard: [GuardName] = []

    @Flag(
        inversion: .prefixedNo,
        help: "Wait for another process that has the run; or hand it to the daemon and leave at once.")
    var wait: Bool?

    @OptionGroup var log: LogOptions
    @Flag(name: .shortAndLong, help: "Do not ask for confirmation on a terminal.") var yes = false
    @Flag(help: "Print the report as JSON.") var json = false

    func validate() throws {
        guard due == (campaign == nil) else {
            throw ValidationError(due ? "--due is for all campaigns: name none" : "name a campaign, or write --due")
        }
    }

    func run() async throws {
        let configuration = try settings.configuration()
        let logger = log.logger
        guard let campaign else {
            return try await DueReport.run(configuration, try settings.store(configuration), logger, json: json)
        }
        let now = Timestamp(Date())
        let (given, files) = try CampaignArguments.definitionWithFiles(
            campaign, variables, configuration, plannedAt: now)
        let scheduled = ScheduledOccurrence(given, named: occurrence)
        let definition = scheduled?.definition ?? given
        _ = try VariantRenderers(definition)
        let app = try configuration.app(for: definition.campaign.topic)
        let sender = try Pipeline.Sender(app, logger: logger)
        let store = try settings.store(configuration)
        let courier = try await WebhookDispatcher.registered(configuration, store, logger: logger)
        if wait == false { try await RunHandling.requireDaemon(in: store) }
        try await scheduled?.check(in: store, now: now)
        try await confirm(definition, store, now)
        let (run, isNew) = try await RunStarter(store: store)
            .start(
                definition, occurrence: occurrence ?? "run-\(now.iso8601)", by: ThisProcess.actor, now: now, plan: plan,
                overriding: Set(overrideGuard), files: files)
        if !isNew {
            Console.note(
                "occurrence \(run.occurrence) has run \(run.id), \(run.state.rawValue); "
                    + (run.state.isFinal ? "nothing is left to send" : "going on with it"))
        }
        let handling = RunHandling(store: store, sender: sender, logger: logger, wait: wait)
        guard let end = try await handling.execute(run) else { return }
        let report = try await store.report(run.id)
        Console.print(json ? try JSONOutput.text(ReportJSON(report)) : ReportText(report: report).text)
        try await courier.drain(within: WebhookDispatcher.lastWait)
        try Self.leave(run, after: end)
    }

    private func confirm(_ definition: RunDefinition, _ store: any AllRoles, _ now: Timestamp) async throws {
        guard !yes, Console.isInteractive else { return }
        let reach = try await store.reach(of: definition.campaign, budget: nil, now: now).total
        guard Console.confirms("Send \(definition.campaign.name) to \(reach.grouped) devices?") else {
            throw Failure(.refused, "not sent; `fanfare plan \(definition.campaign.name)` shows what it would do")
        }
    }

    static func leave(_ run: Run, after end: RunEnd) throws {
        switch end {
        case .finished, .cancelled: return
        case .paused(let person, let reason):
            throw Failure(
                .tryAgain,
                "paused by \(person)\(reason.map { ": \($0)" } ?? ""); `fanfare resume \(run.id)` goes on with it")
        case .stoppedEarly:
            throw Failure(.tryAgain, "stopped before the end; run the same command again to go on")
        case .waiting(let moment):
            throw Failure(.tryAgain, "the rest is due at \(moment.iso8601); run the same command again then")
        case .busy(let owner, let heartbeat):
            throw Failure(
                .tryAgain,
                "another process has run \(run.id) (\(ProcessName.shown(owner)), alive at \(heartbeat.iso8601)); wait for "
                    + "it, or run this again later")
        case .unreachable(let reason), .breakerOpen(let reason):
            throw Failure(.unavailable, "paused: \(reason)")
        case .credentialRefused(let reason):
            throw Failure(.credentialRefused, "paused: \(reason)")
        }
    }
}

extension GuardName: ExpressibleByArgument {}

extension PlanToken: ExpressibleByArgument {
    public init?(argument: String) {
        self.init(argument)
    }
}
