import ArgumentParser
import Campaigns
import Daemon
import Foundation
import Logging
import Model
import Senders
import Sending
import Store
import UnixSignals
import WebClient

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Send a campaign now, and print its report.",
        discussion: """
            With --occurrence you may repeat the same command, by cron, a timer or by hand: there is one run, and a \
            run that was interrupted continues where it stopped, unless a person paused it. An occurrence of the \
            campaign's schedule, such as 2026-12-01T09:00, is sent as the daemon would. While `fanfare serve` is \
            running it sends the run, and this command follows it. Ctrl-C stops a run cleanly; a second Ctrl-C stops \
            immediately, which leaves the requests in flight in doubt until the next start.

            With --occurrence-by day the occurrence is named by the current time in this machine's zone (TZ): \
            timer-2026-11-22, by hour timer-2026-11-22T09, by minute timer-2026-11-22T09:05; an hour that the clock \
            shows twice is followed by its UTC offset. An unfinished run is sent first, and the command then creates \
            no new run, so a restart after midnight continues yesterday's. A late run waits for a person and is \
            reported, and the new one starts. --unfinished continues an unfinished run and starts nothing new.

            A run that no process sent for longer than late_by_max does not continue automatically, and neither does one \
            that a breaker stopped: exit 76. A person then uses `fanfare resume RUN` or `fanfare cancel RUN`. An occurrence \
            that was missed or refused before exits with 3.

            `fanfare run --due` does what the daemon would do now for all campaigns, then exits: started every few \
            minutes by a timer, it replaces the daemon.
            """)

    @OptionGroup var settings: Settings

    @Argument(
        help: "The campaign's name, or the path of its file; omit it with --due.",
        completion: .custom(CampaignNames.completions))
    var campaign: String?

    @OptionGroup var variables: VariableArguments
    @Flag(help: "Start due occurrences, continue unfinished runs, then exit.") var due = false

    @Option(
        help: "The name of this occurrence; an occurrence that already has a run is not sent again (default: the time)."
    )
    var occurrence: String?

    @Option(
        help: "Continue a run that this option left unfinished; else name the occurrence by the day, hour or minute.")
    var occurrenceBy: TimerOccurrence.Unit?

    @Flag(help: "Continue a run that --occurrence-by left unfinished, and start nothing new.") var unfinished = false

    @Option(help: "The hash that `fanfare plan` printed: send exactly that plan, or exit 3 and list the changes.")
    var plan: String?

    @Option(
        help: "Override a guard by name: max_reach, min_reach, max_growth or seeds; may be repeated; is recorded.",
        completion: .list(GuardName.offered), transform: GuardName.named)
    var overrideGuard: [GuardName] = []

    @Flag(help: "Start without the signatures that the run needs; recorded, and needs --reason.")
    var breakGlass = false
    @Option(help: "The reason for --break-glass, for the audit log.") var reason: String?

    @Flag var waiting: Waiting?

    @OptionGroup var log: LogOptions
    @Flag(name: .shortAndLong, help: "Do not ask for confirmation on a terminal.") var yes = false
    @Flag(help: "Print the report as JSON.") var json = false

    func validate() throws {
        guard due == (campaign == nil) else {
            throw ValidationError(
                due ? "--due is for all campaigns: name no campaign" : "name a campaign, or write --due")
        }
        let named = [occurrence != nil, occurrenceBy != nil, unfinished].count { $0 }
        guard named <= (due ? 0 : 1) else {
            throw ValidationError(
                due
                    ? "--due takes its occurrences from the schedules: give no occurrence"
                    : "give one of --occurrence, --occurrence-by and --unfinished")
        }
        guard breakGlass == (reason?.contains { !$0.isWhitespace } ?? false), !breakGlass || !due else {
            throw ValidationError("--break-glass and --reason TEXT go together, for one campaign")
        }
        if let problem = occurrence.flatMap(OccurrenceName.problem) { throw ValidationError(problem) }
        if let plan, PlanToken(plan) == nil {
            throw ValidationError(PlanToken.fault(plan).messages.joined(separator: "; "))
        }
    }

    private var wait: Bool? { waiting.map { $0 == .wait } }

    /// The plan that the run must match. ``validate()`` has checked its form.
    private var planned: PlanToken? { plan.flatMap { PlanToken($0) } }

    func run() async throws {
        let session = try await settings.session()
        guard let campaign else {
            return try await RunDueOnce.run(session, log.logger(session.configuration), json: json)
        }
        // A recorded run continues as it was frozen, even if the file has changed since.
        var late: Failure?
        while !CampaignSource.isPath(campaign), let run = try await known(campaign, session) {
            late = try await goOn(with: run, session)
            guard late != nil else { return }
        }
        let (given, files) = try CampaignArguments.definitionWithFiles(
            campaign, variables, session.configuration, plannedAt: session.now)
        while given.campaign.name != campaign, let run = try await known(given.campaign.name, session) {
            late = try await goOn(with: run, session)
            guard late != nil else { return }
        }
        guard !unfinished else { return Console.note("\(given.campaign.name) has no unfinished run") }
        if let occurrenceBy {
            try await nameLateRuns(of: given.campaign.name, session)
            try await TimerOccurrence.requireKnown(
                by: occurrenceBy, of: given.campaign.name, session.store, now: session.clock.now(), zone: .current)
        }
        try await start(given, files, session)
        // This call found the run late, so fail to alert a person. The next call reports it only on standard error.
        if let late { throw late }
    }

    private func nameLateRuns(of campaign: String, _ session: Session) async throws {
        let found = try await session.useCases.start
            .unfinished(of: campaign, occurrence: key(at: session.clock.now()))
        for run in found.late {
            Console.note(
                "warning: run \(run.id), occurrence \(run.occurrence), is paused as late and still waits: `fanfare resume "
                    + "\(run.id)` sends the rest, `fanfare cancel \(run.id)` ends it; this command starts the next "
                    + "occurrence"
            )
        }
    }

    /// Returns the existing run that this call means, or `nil`.
    private func known(_ campaign: String, _ session: Session) async throws -> Run? {
        let starting = session.useCases.start
        if let occurrence { return try await starting.known(campaign, occurrence: occurrence, plan: planned) }
        guard unfinished || occurrenceBy != nil else { return nil }
        let key = occurrenceBy == nil ? nil : key(at: session.clock.now())
        return try await starting.unfinished(of: campaign, occurrence: key).next
    }

    private func start(_ given: RunDefinition, _ files: [String: String], _ session: Session) async throws {
        let starting = session.useCases.start
        var prepared = try await starting.prepare(given, occurrence: occurrence)
        var sending = try await CommandSender.reporting(session, log)
        if wait == false { try await ExecuteRun.requireDaemon(session.runs) }
        if let missed = try await starting.missed(prepared, by: session.actor, now: session.now) {
            return try await sending.execute(missed, wait: wait, json: json)
        }
        try await confirm(&prepared, starting, session)
        // The answer of a person may have taken time.
        let now = session.clock.now()
        let app = prepared.app
        let started = try await starting.start(
            prepared, occurrence: key(at: now), by: session.actor, now: now, plan: planned,
            overriding: Set(overrideGuard), files: files, emergencyOverride: reason
        ) {
            try await sending.prepareUnlessServed(app)
        }
        for warning in started.warnings { Console.note("warning: \(warning)") }
        if !started.isNew { note(started.run) }
        try await session.warnOfEmergencyOverride(started.run)
        try await sending.execute(started.run, wait: wait, json: json)
    }

    private func key(at now: Timestamp) -> String {
        occurrence ?? occurrenceBy.map { TimerOccurrence.key(by: $0, at: now, zone: .current) } ?? "run-\(now.iso8601)"
    }

    /// Continues a run. Returns the failure of a late run if this call must then start another occurrence. Returns
    /// `nil` if the call is done.
    private func goOn(with run: Run, _ session: Session) async throws -> Failure? {
        note(run, isOther: isOther(run, session))
        if wait == false, RunEnd(run) == nil { try await ExecuteRun.requireDaemon(session.runs) }
        var sending = try await CommandSender.reporting(session, log)
        let isOther = occurrenceBy != nil && run.occurrence != key(at: session.clock.now())
        sending.reportsLateRun = !isOther
        do {
            try await sending.execute(run, wait: wait, json: json)
        } catch let failure as Failure where isOther {
            guard try await session.runs.run(run.id)?.waitsAsLate == true else { throw failure }
            return failure
        }
        return nil
    }

    /// Returns whether the run of `--occurrence` differs in texts or values from the present files and `--var`.
    private func isOther(_ run: Run, _ session: Session) -> Bool {
        guard occurrence != nil, let campaign,
            let given = try? CampaignSource.load(campaign, session.configuration)
                .definition(with: variables.values(), plannedAt: session.now),
            let now = try? PlanToken(given, reach: 0, digest: ""),
            let then = try? PlanToken(run.definition, reach: 0, digest: "")
        else { return false }
        return now.template != then.template || now.variables != then.variables
    }

    private func note(_ run: Run, isOther: Bool = false) {
        let summary =
            switch run.state {
            case _ where run.state.isFinal && isOther:
                "that run had other texts, so nothing is sent; give another --occurrence to send these texts"
            case _ where run.state.isFinal: "nothing remains to be sent"
            case .paused where run.isHaltedAutomatically: "the run paused automatically, and is retried"
            case .paused: "it stays paused until `fanfare resume \(run.id)` or `fanfare cancel \(run.id)`"
            default:
                occurrenceBy == nil
                    ? "this command continues that run, unless another process sends it"
                    : "that run comes first; this command starts no other"
            }
        Console.note("occurrence \(run.occurrence) has run \(run.id), \(run.state.rawValue); \(summary)")
    }

    private func confirm(
        _ prepared: inout StartCampaign.Prepared, _ starting: StartCampaign, _ session: Session
    ) async throws {
        guard !yes, Console.isInteractive else { return }
        let name = prepared.definition.campaign.name
        let reach = try await starting.reach(of: &prepared, now: session.now)
        let summary = reach.total == 0 ? "no device" : reach.environmentSummary
        guard Console.confirms(Console.warned("Send \(name) to \(summary)?", on: .notes)) else {
            throw Failure(.refused, "not sent; `fanfare plan \(name)` shows what it would do")
        }
    }
}

extension TimerOccurrence.Unit: ExpressibleByArgument {}

extension GuardName {
    /// The guards that a person may override. The others always refuse, and are not offered.
    static let offered = allCases.filter(\.mayBeOverridden).map(\.rawValue)

    /// Parses the value of `--override-guard`.
    @Sendable static func named(_ name: String) throws -> GuardName {
        guard let known = GuardName(rawValue: name) else {
            throw ValidationError("no such guard; use one of \(offered.joined(separator: ", "))")
        }
        return known
    }
}

/// The flags `--wait` and `--no-wait`.
enum Waiting: EnumerableFlag {
    case wait, noWait

    static func help(for value: Waiting) -> ArgumentHelp? {
        switch value {
        case .wait: "Wait also if a process other than a daemon sends the run."
        case .noWait: "Hand the run to the daemon and exit immediately."
        }
    }
}

/// One pass of `run --due`, which does what the daemon would do now. Started by a timer, it replaces the daemon.
struct RunDueOnce: Sendable {
    /// The maximum wait within a pass. A run with nothing due for longer is left to the next pass.
    private static let idleLimit: Duration = .seconds(60)

    private let session: Session
    private let logger: Logger

    init(_ session: Session, logger: Logger) {
        self.session = session
        self.logger = logger
    }

    /// Returns the runs that were carried out or continued, in their present state. A signal stops them gracefully.
    func execute() async throws -> DueOutcome {
        let configuration = session.configuration
        var catalogue = CampaignCatalogue()
        catalogue.refresh(campaigns: configuration.campaigns, templates: configuration.templates)
        for problem in catalogue.problems { problem.diagnostics.forEach { Console.note($0.description) } }
        let snapshot = Scheduler.CampaignSnapshot(campaigns: catalogue.ready, names: catalogue.names)
        let registration = try session.registration()
        let actor = ThisProcess.sender(registration)
        let senders = try LocalSender.of(
            session, actor: actor, registration: registration, tokens: ProviderTokens(session, logger: logger),
            logger: logger
        ) { configuration }
        let daemon = Scheduler(
            store: session.store, senders: senders, actor: actor, clock: session.clock, web: .feeds(configuration),
            retention: { configuration.outcomesKept }, approvals: { configuration.approvals },
            brake: { configuration.volumeBrake }, logger: logger)
        var outcome = try await runOnce(daemon, snapshot)
        // Unfinished runs have continued, although the campaign folder cannot be used.
        if let loss = catalogue.loss {
            outcome.faults.append(DueFault("the schedules", Failure(.tryAgain, loss.messages.joined(separator: "; "))))
        }
        // Read the runs again outside the task that a signal cancels.
        for index in outcome.runs.indices {
            outcome.runs[index].run = try await session.runs.run(outcome.runs[index].run.id) ?? outcome.runs[index].run
        }
        return outcome
    }

    private func runOnce(_ daemon: Scheduler, _ snapshot: Scheduler.CampaignSnapshot) async throws -> DueOutcome {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup)
        return try await withThrowingTaskGroup(of: DueOutcome?.self) { group in
            group.addTask {
                try await daemon.runOnce(snapshot, idleLimit: Self.idleLimit)
            }
            group.addTask {
                for await _ in signals {
                    Console.note("stopping: nothing more is sent, waiting for the requests in flight")
                    break
                }
                return nil
            }
            // The first task to finish cancels the other.
            let first = try await group.next() ?? nil
            group.cancelAll()
            if let first { return first }
            return try await group.next().flatMap(\.self) ?? DueOutcome()
        }
    }
}

extension RunDueOnce {
    /// Leaves the work to a daemon if there is one. Otherwise does one pass, prints its results, and throws the most
    /// serious failure.
    static func run(_ session: Session, _ logger: Logger, json: Bool) async throws {
        // Wait until a takeover is allowed. Short passes would otherwise never recover the deliveries of a dead
        // machine.
        try await session.runs.waitForQuietTime()
        try await session.recoverAbandoned()
        try await session.runs.requireNoStop(campaign: nil)
        if let daemon = try await session.runs.daemon() {
            Console.note("the daemon already starts due runs: \(daemon.holder.summary)")
            if json { Console.print(try ResultJSON.text(DueResult(ended: []))) }
            return
        }
        let webhooks = try await WebhookDispatcher.registered(session, logger: logger)
        let outcome = try await RunDueOnce(session, logger: logger).execute()
        let ended = outcome.runs
        Console.print(json ? try ResultJSON.text(DueResult(ended: ended)) : DueText.text(ended))
        for entry in ended {
            let emptyReach = try await EmptyReach.of(entry.run, in: session.store, now: session.now)
            if let emptyReach { Console.note("run \(entry.run.id): \(emptyReach)") }
        }
        try await webhooks.drain(within: WebhookDispatcher.lastWait)
        try throwGravestFailure(of: outcome, session.runs)
    }

    /// Throws the most serious failure. A run that waits for the next pass is no failure.
    private static func throwGravestFailure(of outcome: DueOutcome, _ runs: FollowRuns) throws {
        let failures =
            outcome.runs.filter(isFailure).compactMap { $0.end.failure(of: $0.run, runs) }
            + outcome.faults.map(\.failure)
        let gravest: [Failure.Kind] = [.credentialRefused, .halted, .internalError, .unavailable, .tryAgain, .refused]
        for kind in gravest + Failure.Kind.allCases.filter({ !gravest.contains($0) }) {
            let found = failures.filter { $0.kind == kind }
            if let first = found.first { throw first.with(found.dropFirst().flatMap(\.messages)) }
        }
    }

    private static func isFailure(_ entry: DueRun) -> Bool {
        switch entry.end {
        case .unreachable, .credentialRefused, .breakerOpen, .halted, .awaitingApproval, .late, .stopped, .stoppedEarly,
            .missed, .refused, .failed, .noDeviceReached, .unsuccessful:
            true
        case .finished, .cancelled, .paused, .busy, .waiting: false
        }
    }
}
