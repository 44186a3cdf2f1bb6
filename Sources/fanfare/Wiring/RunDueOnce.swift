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

    /// Returns the runs that were carried out or continued, in their present state. The first signal stops them
    /// gracefully. The second exits immediately.
    func execute() async throws -> DueOutcome {
        let configuration = session.configuration
        var catalogue = CampaignCatalogue()
        catalogue.refresh(configuration)
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
            retention: { configuration.retention }, approvals: { configuration.approvals },
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
        let signals = await SecondSignal.first(of: .sigint, .sigterm, .sighup)
        defer { SecondSignal.workEnded() }
        return try await withThrowingTaskGroup(of: DueOutcome?.self) { group in
            group.addTask {
                try await daemon.runOnce(snapshot, idleLimit: Self.idleLimit)
            }
            group.addTask {
                for await _ in signals { break }
                return nil
            }
            // The first task to finish cancels the other.
            let first = try await group.next() ?? nil
            group.cancelAll()
            if let first { return first }
            SecondSignal.exitsWhileSending()
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
