import APNs
import Campaigns
import Daemon
import Foundation
import Logging
import Model
import Senders
import Sending
import Store
import Synchronization
import UnixSignals

/// Sends runs from this process, or follows the daemon that sends them, and prints their reports.
struct CommandSender: Sendable {
    private let session: Session
    private let logger: Logger
    private let tokens: ProviderTokens
    /// The webhooks that report the runs. `nil` for test runs, which no webhook reports.
    private let webhooks: WebhookDispatcher?
    /// The setup, if ``prepare(_:)`` has loaded it before the run was created. Otherwise this process loads it when it
    /// sends.
    private var setup: SendingSetup?
    /// Whether a run that pauses as late gets a report on standard output. `false` if the caller starts another run.
    var reportsLateRun = true

    private init(_ session: Session, _ logger: Logger, _ webhooks: WebhookDispatcher?) {
        self.session = session
        self.logger = logger
        self.webhooks = webhooks
        tokens = ProviderTokens(session, logger: logger)
    }

    /// Registers the webhooks, so that they report all changes from now on.
    static func reporting(_ session: Session, _ log: LogOptions) async throws -> CommandSender {
        let logger = log.logger(session.configuration)
        return CommandSender(session, logger, try await WebhookDispatcher.registered(session, logger: logger))
    }

    /// Sends test runs, which no webhook reports.
    static func testing(_ session: Session, _ log: LogOptions) -> CommandSender {
        CommandSender(session, log.logger(session.configuration), nil)
    }

    /// Prepares this process to send an app's runs, unless a daemon is running. A fault is then an error before
    /// anything is recorded. A daemon sends with its own copy of the keys, which this user may not be able to read.
    mutating func prepareUnlessServed(_ app: Configuration.App) async throws {
        if try await session.runs.daemon() == nil { _ = try await prepare(app) }
    }

    /// Registers this process as a sender and loads the app's keys, even if a daemon is running. Returns `false` if
    /// this process cannot use the keys and a daemon is running, which may be able to.
    mutating func prepare(_ app: Configuration.App) async throws -> Bool {
        do {
            setup = try SendingSetup(app, tokens, logger: logger)
        } catch {
            guard error is CredentialError || error is Failure, try await session.runs.daemon() != nil else {
                throw error
            }
            return false
        }
        _ = try session.registration()
        return true
    }

    /// Sends the run in this process.
    func send(_ run: Run) async throws -> RunEnd {
        let registration = try session.registration()
        let (configuration, actor) = (session.configuration, ThisProcess.sender(registration))
        let sender = try LocalSender.of(
            session, actor: actor, registration: registration, tokens: tokens, setup: setup, logger: logger
        ) { configuration }
        return try await ForegroundRun(runs: session.runs, clock: session.clock, sender: sender, logger: logger)
            .execute(run)
    }

    /// Follows a run handed over to the daemon until the run ends. Sends it here if the daemon exits first.
    func handedOver(_ run: Run) async throws -> RunEnd {
        try await execution(of: run, wait: nil).execute(run) ?? .stoppedEarly
    }

    private func execution(of run: Run, wait: Bool?) -> ExecuteRun {
        ExecuteRun(runs: session.runs, observer: .console(session.runs, run), wait: wait) { run in
            try await send(run)
        }
    }

    /// Sends or follows the run until it ends, prints its report and delivers webhooks. Throws the failure that the end
    /// means.
    ///
    /// - Parameter wait: see ``ExecuteRun``.
    func execute(_ run: Run, wait: Bool?, json: Bool) async throws {
        guard let end = try await execution(of: run, wait: wait).execute(run) else { return }
        if case .late = end, !reportsLateRun, let failure = end.failure(of: run, session.runs) { throw failure }
        let report = try await session.useCases.reports.report(run)
        let emptyReach = try await EmptyReach.of(report.run, in: session.store, now: session.clock.now())
        Console.print(
            json
                ? try ResultJSON.text(ReportResult(report, nobodyReached: emptyReach)) : ReportText(report: report).text
        )
        if let emptyReach { Console.note("\(emptyReach)") }
        try await deliverWebhooks()
        if let failure = end.failure(of: report.run, session.runs) { throw failure }
    }

    /// Delivers the due webhook messages, within ``WebhookDispatcher/lastWait``.
    func deliverWebhooks() async throws { try await webhooks?.drain(within: WebhookDispatcher.lastWait) }
}

extension ExecuteRun.Observer {
    /// Returns an observer that prints notes and progress on standard error.
    static func console(_ runs: FollowRuns, _ run: Run) -> ExecuteRun.Observer {
        ExecuteRun.Observer(
            note: { Console.note($0) },
            watching: { operation in
                let control = RunControl(counts: DeliveryCounts(), isFrozen: false)
                return try await withThrowingTaskGroup(of: RunEnd??.self) { group in
                    group.addTask {
                        await ProgressPrinter(control: control, now: { runs.now }) { try await runs.waits(of: run) }
                            .print()
                        return nil
                    }
                    defer { group.cancelAll() }
                    return try await operation { counts, storeWait in
                        control.progress.observed(counts)
                        control.storeBackoff.observed(storeWait)
                    }
                }
            })
    }
}

/// Carries out a run with progress on standard error, and obeys SIGINT, SIGTERM and SIGHUP.
struct ForegroundRun: Sendable {
    let runs: FollowRuns
    let clock: WallClock
    let sender: LocalSender
    let logger: Logger

    private enum Event {
        case ended(RunEnd)
        case other
    }

    /// Sends the run. The first signal stops it and waits for requests in flight; the second stops it immediately.
    func execute(_ run: Run) async throws -> RunEnd {
        // Closing the terminal (SIGHUP) must not leave requests in doubt.
        let signals = await SecondSignal.first(of: .sigint, .sigterm, .sighup)
        defer { SecondSignal.workEnded() }
        let stop = StopSwitch()
        let lines = RunLines(run, clock: clock, logger: logger)
        let (started, startedContinuation) = AsyncStream.makeStream(of: RunControl.self)
        return try await withThrowingTaskGroup(of: Event.self) { group in
            group.addTask {
                defer {
                    startedContinuation.finish()
                    sender.close()
                }
                let end = try await sender.execute(run, idleLimit: nil, unusable: .isThrown) { control, _ in
                    stop.attach(control)
                    lines.began(control)
                    startedContinuation.yield(control)
                }
                return .ended(end)
            }
            group.addTask {
                await sender.work()
                return .other
            }
            group.addTask {
                for await control in started {
                    await ProgressPrinter(control: control, now: { [runs] in runs.now }) { [runs] in
                        try await runs.waits(of: run)
                    }
                    .print()
                }
                return .other
            }
            group.addTask {
                await obey(signals, stop)
                return .other
            }
            while let event = try await group.next() {
                guard case .ended(let end) = event else { continue }
                lines.ended(end)
                group.cancelAll()
                return end
            }
            throw CancellationError()
        }
    }

    private func obey(_ signals: UnixSignalsSequence, _ stop: StopSwitch) async {
        for await _ in signals {
            stop.ask()
            SecondSignal.exitsWhileSending()
        }
    }
}

/// A stop request, which may arrive before the run has begun.
private final class StopSwitch: Sendable {
    private let state = Mutex((control: RunControl?.none, isAsked: false))

    func attach(_ control: RunControl) {
        let isAsked = state.withLock { state in
            state.control = control
            return state.isAsked
        }
        if isAsked { control.stop(.stopRequested) }
    }

    func ask() {
        let control = state.withLock { state in
            state.isAsked = true
            return state.control
        }
        control?.stop(.stopRequested)
    }
}
