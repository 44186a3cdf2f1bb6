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

            A run that no process has sent for over late_by_max does not continue automatically, and neither does one \
            that a breaker stopped: exit 76. A person then uses `fanfare resume RUN` or `fanfare cancel RUN`. An occurrence \
            that was missed or refused before gives exit 3.

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
        help:
            "The name of this occurrence; an occurrence that already has a run is not sent again (default: derived from the content)."
    )
    var occurrence: String?

    @Option(
        help: "Continue a run that this option left unfinished; else name the occurrence by the day, hour or minute.")
    var occurrenceBy: TimerOccurrence.Unit?

    @Flag(help: "Continue a run that --occurrence-by left unfinished, and start nothing new.") var unfinished = false

    @Option(
        help:
            "The hash that `fanfare plan` printed, or a kept plan's number: send exactly that, or exit 3 and list the changes."
    )
    var plan: String?

    @Option(
        help: "Override a guard by name: max_reach, min_reach, max_growth or seeds; may be repeated; is recorded.",
        completion: .list(GuardName.offered), transform: GuardName.named)
    var overrideGuard: [GuardName] = []

    @Flag(help: "Send even if a run of the last 20 hours has the same content.") var again = false

    @Flag(help: "Start without the signatures that the run needs; recorded, and needs --reason.")
    var breakGlass = false
    @Option(help: "The reason for --break-glass, for the audit log.") var reason: String?

    @Flag var waiting: Waiting?

    @OptionGroup var log: LogOptions
    @Flag(name: .shortAndLong, help: "Do not ask for confirmation on a terminal.") var yes = false
    @Flag(help: "Print the report as JSON.") var json = false

    func validate() throws {
        guard !again || !due, !again || !unfinished else {
            throw ValidationError("--again is for a new send of one campaign: leave out --due and --unfinished")
        }
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
        if plan.flatMap({ Int64($0) }) != nil {
            guard variables.variables.isEmpty, variables.varsFile == nil, occurrenceBy == nil, !due, !unfinished else {
                throw ValidationError("a kept plan has its values: leave out --var, --vars-file and --occurrence-by")
            }
        } else if let plan, PlanToken(plan) == nil {
            throw ValidationError(PlanToken.fault(plan).messages.joined(separator: "; "))
        }
    }

    private var wait: Bool? { waiting.map { $0 == .wait } }

    /// The plan that the run must match. ``validate()`` has checked its form.
    private var planned: PlanToken? { plan.flatMap { PlanToken($0) } }

    func run() async throws {
        let session = try await settings.session()
        guard let number = plan.flatMap({ Int64($0) }) else { return try await run(session) }
        try await held(to: number, session).run(session)
    }

    /// Returns the same command with the hash, the values and the name of a kept plan.
    private func held(to number: Int64, _ session: Session) async throws -> RunCommand {
        guard let kept = try await session.useCases.plans.plan(number), kept.file == campaign else {
            throw Failure(
                .notFound,
                "campaign \(campaign ?? "") has no plan \(number); `fanfare plans` lists those of the last 90 days")
        }
        guard let token = kept.token, !kept.isScheduled else {
            throw Failure(
                .invalidData,
                "plan \(number) cannot be sent: "
                    + (kept.isScheduled ? "the schedule starts it" : "a variable has no value; plan it again"))
        }
        var command = self
        command.plan = token
        command.occurrence = occurrence ?? kept.occurrence
        command.variables.variables = kept.definition.variables.map { "\($0.key)=\($0.value)" }
        return command
    }

    private func run(_ session: Session) async throws {
        guard let campaign else {
            return try await RunDueOnce.run(session, log.logger(session.configuration), json: json)
        }
        // A recorded run continues as it was frozen, even if the file has changed since.
        var late: Failure?
        while !CampaignSource.isPath(campaign), let run = try await known(campaign, session) {
            late = try await goOn(with: run, session)
            guard late != nil else { return }
        }
        let (given, typed, files) = try CampaignArguments.definitionWithFiles(
            campaign, variables, session.configuration, plannedAt: session.now)
        while given.campaign.name != campaign, let run = try await known(given.campaign.name, session) {
            late = try await goOn(with: run, session)
            guard late != nil else { return }
        }
        guard !unfinished else { return try await noteNothingLeft(of: given.campaign.name, session) }
        if let occurrenceBy {
            try await nameLateRuns(of: given.campaign.name, session)
            try await TimerOccurrence.requireKnown(
                by: occurrenceBy, of: given.campaign.name, session.store, now: session.clock.now(), zone: .current)
        }
        try await start(given, typed, files, session)
        // This call found the run late, so fail to alert a person. The next call reports it only on standard error.
        if let late { throw late }
    }

    /// Says that no run of a timer is left, and names an unfinished run that this option does not continue.
    private func noteNothingLeft(of campaign: String, _ session: Session) async throws {
        guard let other = try await session.useCases.start.latestUnfinished(of: campaign) else {
            return Console.note("\(campaign) has no unfinished run")
        }
        Console.note(
            "\(campaign) has no run that --occurrence-by left unfinished; run \(other.id), occurrence "
                + "\(other.occurrence), is \(other.state.rawValue), and --unfinished does not continue it: see `fanfare "
                + "status \(other.id)`")
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

    /// Says that a send by hand does not replace the next start of the schedule.
    private func noteSchedule(of definition: RunDefinition, at now: Timestamp) {
        let schedule = definition.campaign.schedule
        guard let next = schedule.flatMap(Timetable.init)?.next(after: now) else { return }
        Console.note(
            "note: \(definition.campaign.name) also starts on its schedule, next at \(next.startsAt.iso8601); "
                + "this send does not replace that start")
    }

    /// Returns the existing run that this call means, or `nil`.
    private func known(_ campaign: String, _ session: Session) async throws -> Run? {
        let starting = session.useCases.start
        if let occurrence { return try await starting.known(campaign, occurrence: occurrence, plan: planned) }
        guard unfinished || occurrenceBy != nil else { return nil }
        let key = occurrenceBy == nil ? nil : key(at: session.clock.now())
        return try await starting.unfinished(of: campaign, occurrence: key).next
    }

    private func start(
        _ given: RunDefinition, _ typed: Set<String>, _ files: [String: String], _ session: Session
    ) async throws {
        let starting = session.useCases.start
        var prepared = try await starting.prepare(given, typed: typed, occurrence: occurrence)
        var sending = try await CommandSender.reporting(session, log)
        if !prepared.isScheduled { noteSchedule(of: prepared.definition, at: session.clock.now()) }
        if wait == false { try await ExecuteRun.requireDaemon(session.runs) }
        if let missed = try await starting.missed(prepared, by: session.actor, now: session.now) {
            return try await sending.execute(missed, wait: wait, json: json)
        }
        var overridden = Set(overrideGuard)
        if again { overridden.insert(.repeated) }
        if try await confirmsRepeat(prepared, starting, session) { overridden.insert(.repeated) }
        try await confirm(&prepared, starting, session)
        // The answer of a person may have taken time.
        let now = session.clock.now()
        let app = prepared.app
        let started = try await starting.start(
            prepared, occurrence: try await name(prepared.definition, starting, at: now), by: session.actor, now: now,
            plan: planned, overriding: overridden, files: files, refusesRepeats: !isNamed, emergencyOverride: reason
        ) {
            try await sending.prepareUnlessServed(app)
        }
        for warning in started.warnings { Console.note("warning: \(warning)") }
        if !started.isNew { note(started.run) }
        try await session.warnOfEmergencyOverride(started.run)
        try await sending.execute(started.run, wait: wait, json: json)
    }

    /// Whether the call names its occurrence. A script that names each send decides what is sent again.
    private var isNamed: Bool { occurrence != nil || occurrenceBy != nil }

    /// The name that the call gives to its occurrence; `nil` if it gives none.
    private func key(at now: Timestamp) -> String? {
        occurrence ?? occurrenceBy.map { TimerOccurrence.key(by: $0, at: now, zone: .current) }
    }

    private func name(
        _ definition: RunDefinition, _ starting: StartCampaign, at now: Timestamp
    ) async throws -> String {
        if let key = key(at: now) { return key }
        return try await starting.name(of: definition, now: now)
    }

    /// Asks on a terminal whether to send content again that was just sent, and returns whether the person agreed.
    private func confirmsRepeat(
        _ prepared: StartCampaign.Prepared, _ starting: StartCampaign, _ session: Session
    ) async throws -> Bool {
        guard !again, occurrenceBy == nil, let earlier = try await starting.earlier(prepared, now: session.now) else {
            return false
        }
        let facts = earlier.facts(now: session.now)
        guard !yes, Console.isInteractive else {
            if isNamed { Console.note("warning: \(facts)") }
            return false
        }
        guard Console.confirms(Console.warned("\(facts). Send it again?", on: .notes)) else {
            throw Failure(.refused, "not sent: \(facts)")
        }
        return true
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
        Console.note("occurrence \(run.occurrence) is run \(run.id), \(run.state.rawValue); \(summary)")
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
    /// The guards that a person may override by name. `--again` overrides the one for repeated content.
    static let offered = allCases.filter { $0.mayBeOverridden && $0 != .repeated }.map(\.rawValue)

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
        case .wait: "Also wait if a process other than a daemon sends the run."
        case .noWait: "Hand the run to the daemon and exit immediately."
        }
    }
}
