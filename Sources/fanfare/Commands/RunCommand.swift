import ArgumentParser
import Campaigns
import Daemon
import Foundation
import Logging
import Model
import Sending
import Store
import UnixSignals
import WebClient

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
        guard let campaign else { return try await DueReport.run(try settings.session(), log.logger, json: json) }
        let configuration = try settings.configuration()
        let now = Timestamp(Date())
        let (given, files) = try CampaignArguments.definitionWithFiles(
            campaign, variables, configuration, plannedAt: now)
        let scheduled = ScheduledOccurrence(given, named: occurrence)
        let definition = scheduled?.definition ?? given
        _ = try VariantRenderers(definition)
        let logger = log.logger
        let app = try configuration.app(for: definition.campaign.topic)
        let session = try Session(configuration)
        let sender = try Pipeline.Sender(app, ProviderTokens(session.store, logger: logger), logger: logger)
        let webhooks = try await WebhookDispatcher.registered(session, logger: logger)
        if wait == false { try await ExecuteRun.requireDaemon(session.runs) }
        try await scheduled?.check(in: session.store, by: session.actor, now: now)
        try await confirm(definition, session)
        let (run, isNew) = try await StartRun(store: session.store)
            .start(
                definition, occurrence: occurrence ?? "run-\(now.iso8601)", by: session.actor, now: now, plan: plan,
                overriding: Set(overrideGuard), files: files)
        for keyless in try await StartRun(store: session.store).keyless(of: run.definition, app: app, now: now) {
            Console.note("warning: \(keyless)")
        }
        if !isNew {
            Console.note(
                "occurrence \(run.occurrence) has run \(run.id), \(run.state.rawValue); "
                    + (run.state.isFinal ? "nothing is left to send" : "going on with it"))
        }
        try await SendingHere(session, sender, logger).execute(run, webhooks, wait: wait, json: json)
    }

    private func confirm(_ definition: RunDefinition, _ session: Session) async throws {
        guard !yes, Console.isInteractive else { return }
        let reach = try await StartRun(store: session.store).reach(of: definition, now: session.now)
        guard Console.confirms("Send \(definition.campaign.name) to \(reach.grouped) devices?") else {
            throw Failure(.refused, "not sent; `fanfare plan \(definition.campaign.name)` shows what it would do")
        }
    }
}

extension GuardName: ExpressibleByArgument {}

extension PlanToken: ExpressibleByArgument {
    public init?(argument: String) {
        self.init(argument)
    }
}

/// `run --due`: what the daemon would do now, and then leave. With it the whole product works from a timer alone.
struct DuePass: Sendable {
    /// What is due later than this is left to the next time.
    private static let idleLimit: Duration = .seconds(60)

    private let session: Session
    private let logger: Logger

    init(_ session: Session, logger: Logger) {
        self.session = session
        self.logger = logger
    }

    /// The runs that were carried out or gone on with, as they are now. A signal stops them in good order.
    func execute() async throws -> [DueRun] {
        let configuration = session.configuration
        var catalogue = CampaignCatalogue()
        catalogue.refresh(campaigns: configuration.campaigns, templates: configuration.templates)
        for problem in catalogue.problems { problem.diagnostics.forEach { Console.note($0.description) } }
        let snapshot = Scheduler.CampaignSnapshot(campaigns: catalogue.ready, names: catalogue.names)
        let senders = SenderRegistry.of(
            store: session.store, actor: ThisProcess.sender,
            tokens: ProviderTokens(session.store, logger: logger), logger: logger, pace: configuration.pace
        ) { configuration }
        let daemon = Scheduler(
            store: session.store, senders: senders, actor: ThisProcess.sender, clock: .system, web: .feeds,
            retention: { configuration.outcomesKept }, logger: logger)
        var ended = try await runOnce(daemon, snapshot)
        // Read again out of the task that a signal cancels.
        for index in ended.indices {
            ended[index].run = try await session.runs.run(ended[index].run.id) ?? ended[index].run
        }
        return ended
    }

    private func runOnce(_ daemon: Scheduler, _ snapshot: Scheduler.CampaignSnapshot) async throws -> [DueRun] {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup)
        return try await withThrowingTaskGroup(of: [DueRun]?.self) { group in
            group.addTask {
                try await daemon.runOnce(snapshot, idleLimit: Self.idleLimit)
            }
            group.addTask {
                for await _ in signals {
                    Console.note("stopping: nothing more is sent, waiting for the answers on their way")
                    break
                }
                return nil
            }
            // Whichever comes first ends the other.
            let first = try await group.next() ?? nil
            group.cancelAll()
            if let first { return first }
            return try await group.next().flatMap(\.self) ?? []
        }
    }
}

extension SenderRegistry {
    /// The lanes of a process that sends for all apps of a configuration, which is asked for when it is needed.
    static func of(
        store: any AllRoles, actor: Actor, tokens: ProviderTokens, logger: Logger, pace: Campaign.Pace?,
        configuration: @escaping @Sendable () -> Configuration
    ) -> SenderRegistry {
        SenderRegistry(
            store: store, actor: actor, pace: pace, clock: .system,
            jitter: { Double.random(in: 0...1) }, logger: logger
        ) { topic in
            let app = try configuration().app(for: topic)
            return SenderRegistry.Entry(sender: try Pipeline.Sender(app, tokens, logger: logger), pace: app.pace)
        }
    }
}
