import Campaigns
import Daemon
import Foundation
import Logging
import Model
import Sending
import Store
import Synchronization
import UnixSignals

/// Sends runs of one app from this process, or follows the daemon that sends them. Then prints the report.
struct SendingHere: Sendable {
    private let session: Session
    private let logger: Logger
    private let sender: @Sendable () throws -> SendingSetup
    /// Whether a run that pauses as late gets a report on standard output. `false` if the caller starts another run.
    var reportsLateRun = true

    /// - Parameter sender: called when this process is to send.
    init(_ session: Session, _ logger: Logger, sender: @escaping @Sendable () throws -> SendingSetup) {
        self.session = session
        self.logger = logger
        self.sender = sender
    }

    /// Sends the run in this process.
    func send(_ run: Run) async throws -> RunEnd {
        let sender = try sender().journaling(in: try session.journals(), obeying: try session.stops())
            .following(session.configuration, topic: run.definition.campaign.topic)
        return try await Broadcast(
            store: session.store, runs: session.runs, clock: session.clock, sender: sender, post: try session.post(),
            logger: logger
        )
        .execute(run)
    }

    /// Follows a run handed over to the daemon until the run ends. Sends it here if the daemon exits first.
    func handedOver(_ run: Run) async throws -> RunEnd {
        let execution = ExecuteRun(runs: session.runs, observer: .console(session.runs, run), wait: nil) { run in
            try await send(run)
        }
        return try await execution.execute(run) ?? .stoppedEarly
    }

    /// Brings the run to its end, prints its report and delivers webhooks. Throws the failure that the end stands for.
    ///
    /// - Parameters:
    ///   - webhooks: registered before anything changes in the run, so that they report all of it.
    ///   - wait: see ``ExecuteRun``.
    func execute(_ run: Run, _ webhooks: WebhookDispatcher, wait: Bool?, json: Bool) async throws {
        let execution = ExecuteRun(runs: session.runs, observer: .console(session.runs, run), wait: wait) { run in
            try await send(run)
        }
        guard let end = try await execution.execute(run) else { return }
        if case .late = end, !reportsLateRun, let failure = end.failure(of: run, session.runs) { throw failure }
        let report = try await ReportRun(store: session.store).report(run)
        let nobody = try await NobodyReached.of(report.run, in: session.store, now: session.clock.now())
        Console.print(
            json ? try ResultJSON.text(ReportResult(report, nobodyReached: nobody)) : ReportText(report: report).text)
        if let nobody { Console.note("\(nobody)") }
        try await webhooks.drain(within: WebhookDispatcher.lastWait)
        if let failure = end.failure(of: report.run, session.runs) { throw failure }
    }
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
                    return try await operation { control.observed($0, storeWait: $1) }
                }
            })
    }
}

/// Carries out a run with progress on standard error, and obeys SIGINT, SIGTERM and SIGHUP.
struct Broadcast: Sendable {
    let store: any AllRoles
    let runs: FollowRuns
    let clock: WallClock
    let sender: SendingSetup
    let post: SenderPost
    let logger: Logger

    private enum Event {
        case ended(RunEnd)
        case other
    }

    /// Sends the run. The first signal stops it and waits for requests in flight; the second stops it immediately.
    func execute(_ run: Run) async throws -> RunEnd {
        // Closing a terminal must not leave anything in doubt.
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup)
        let stop = StopSwitch()
        let lines = RunLines(run, clock: clock, logger: logger)
        let (started, startedContinuation) = AsyncStream.makeStream(of: RunControl.self)
        return try await withThrowingTaskGroup(of: Event.self) { group in
            group.addTask {
                defer { startedContinuation.finish() }
                let end = try await pipeline.execute(run, as: ThisProcess.sender(post)) { control, _ in
                    stop.attach(control)
                    lines.began(control)
                    startedContinuation.yield(control)
                }
                return .ended(end)
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

    private var pipeline: Pipeline {
        Pipeline(
            store: store, sender: sender, clock: clock, jitter: { Double.random(in: 0...1) }, logger: logger,
            post: post)
    }

    private func obey(_ signals: UnixSignalsSequence, _ stop: StopSwitch) async {
        var isSecond = false
        for await _ in signals {
            if isSecond { Self.leaveAtOnce() }
            isSecond = true
            Console.note(
                "stopping: nothing more is sent, waiting for the answers on their way; once more to stop at once")
            stop.ask()
        }
    }

    /// Exits immediately, which is as safe as a crash: requests in flight are in doubt, and the next start says so.
    /// Uses `_exit`, because threads that use the libraries must not see the libraries shut down.
    private static func leaveAtOnce() -> Never {
        Console.note("stopped at once; the next start puts in order what was on its way")
        ThisProcess.leave(ExitStatus.tryAgain.rawValue)
    }
}

/// A stop request, which may come before there is a run to stop.
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
