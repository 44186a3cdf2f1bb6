import ArgumentParser
import Engine
import Foundation
import Logging
import Model
import Storage

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Send a campaign now, and print its report.",
        discussion: """
            With --occurrence the same command may be given twice, by cron, a timer and a person: there is one run, and a \
            run that was cut short goes on where it stood, unless somebody paused it. Ctrl-C stops it in good order; a \
            second Ctrl-C at once, which leaves what is on its way in doubt until the next start.
            """)

    @OptionGroup var settings: Settings
    @OptionGroup var arguments: CampaignArguments

    @Option(
        help: "Names this occurrence; one that was run before is not sent again (default: the time, so always new).")
    var occurrence: String?

    @Option(help: "The hash that `fanfare plan` printed: send just that, or exit 3 and say what has changed.")
    var plan: PlanToken?

    @Option(
        help: "Pass over a guard of the campaign: max_reach, min_reach or max_growth; may be repeated; is recorded.")
    var overrideGuard: [GuardName] = []

    @OptionGroup var log: LogOptions
    @Flag(name: .shortAndLong, help: "Do not ask for confirmation on a terminal.") var yes = false
    @Flag(help: "Print the report as JSON.") var json = false

    func run() async throws {
        let configuration = try settings.configuration()
        let now = Timestamp(Date())
        let (definition, files) = try arguments.definitionWithFiles(configuration, plannedAt: now)
        _ = try VariantRenderers(definition)
        let app = try configuration.app(for: definition.campaign.topic)
        let logger = log.logger
        let sender = try Pipeline.Sender(app, logger: logger)
        let store = try settings.store(configuration)
        let courier = try await WebhookCourier.registered(configuration, store, logger: logger)
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
        let end =
            run.state.isFinal
            ? RunEnd.finished : try await Broadcast(store: store, sender: sender, logger: logger).carryOut(run)
        let report = try await store.report(run.id)
        Console.print(json ? try JSONOutput.text(ReportJSON(report)) : ReportText(report: report).text)
        try await courier.drain(within: WebhookCourier.lastWait)
        try Self.leave(run, after: end)
    }

    private func confirm(_ definition: RunDefinition, _ store: Store, _ now: Timestamp) async throws {
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
