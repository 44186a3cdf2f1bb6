package import Model
import Senders
package import Sending
package import Store

/// Executes a run until it ends. If there is a daemon, it learns of the run through the store and sends it. Otherwise,
/// this process sends the run.
package struct ExecuteRun: Sendable {
    /// The functions that show the execution in a front end.
    package struct Observer: Sendable {
        package typealias Observe = @Sendable (DeliveryCounts, StoreWait?) -> Void
        /// Watches the run until it ends, or until no process has it.
        package typealias Watch = @Sendable (@escaping Observe) async throws -> RunEnd?

        /// Shows a sentence to the person who waits.
        package var note: @Sendable (String) -> Void
        /// Called while another process has the run. Calls the watch, and shows the counts that the watch reports.
        package var watching: @Sendable (Watch) async throws -> RunEnd?

        package init(
            note: @escaping @Sendable (String) -> Void, watching: @escaping @Sendable (Watch) async throws -> RunEnd?
        ) {
            self.note = note
            self.watching = watching
        }
    }

    /// The maximum number of recoveries. Each recovery waits for several trust windows.
    private static let recoveriesMax = 2

    private let runs: FollowRuns
    private let observer: Observer
    private let wait: Bool?
    private let here: @Sendable (Run) async throws -> RunEnd

    /// - Parameters:
    ///   - wait: `true` to wait for any process that has the run, `false` to only hand the run over, `nil` to wait for
    ///     the daemon only.
    ///   - here: sends the run in this process.
    package init(
        runs: FollowRuns, observer: Observer, wait: Bool?, here: @escaping @Sendable (Run) async throws -> RunEnd
    ) {
        self.runs = runs
        self.observer = observer
        self.wait = wait
        self.here = here
    }

    /// Executes the run and returns how it ended. Returns `nil` if the run was handed over to the daemon and `wait`
    /// is `false`. A run that has ended, or that waits for a person, stays unchanged.
    ///
    /// - Parameter run: the run as currently recorded.
    package func execute(_ run: Run) async throws -> RunEnd? {
        let pause = RunEnd(run)
        // The daemon waits before it retries a run that paused itself. If a person requests the run, continue it
        // immediately.
        if let pause, !pause.goesOnWithNextStart || wait == false { return pause }
        var recoveriesLeft = Self.recoveriesMax
        while true {
            if pause == nil, let daemon = try await runs.daemon() {
                let summary = "run \(run.id) is sent by the daemon, \(daemon.holder.summary)"
                if wait == false {
                    observer.note(summary)
                    return nil
                }
                observer.note("\(summary); the run continues there when this command exits")
                if let end = try await follow(run, daemon.holder, whileDaemon: true) { return end }
                continue
            }
            let end = try await sendHere(run)
            guard case .busy(let owner, _) = end, wait != false else { return end }
            let holder = runs.holder(owner)
            // The first heartbeat of a killed process may be committed after the search for abandoned runs: search
            // again.
            if holder.state == .ended, recoveriesLeft > 0 {
                recoveriesLeft -= 1
                for found in try await runs.recoverAbandoned() { observer.note(found.summary) }
                continue
            }
            // The daemon may have retried a self-paused run since the check above.
            let isDaemon = try await runs.daemon()?.holder.process == holder.process
            guard isDaemon || wait == true else { return end }
            observer.note("waiting for \(holder.summary), which owns run \(run.id)")
            if let end = try await follow(run, holder, whileDaemon: isDaemon) { return end }
        }
    }

    /// Sends the run in this process. Returns the recorded end if another process has ended the run in the meantime.
    private func sendHere(_ run: Run) async throws -> RunEnd {
        do {
            return try await here(run)
        } catch StoreError.runIsOver(let run, let state) {
            if let end = try await runs.run(run).flatMap({ RunEnd($0) }) { return end }
            guard state == .finished else { throw StoreError.runIsOver(run: run, state: state) }
            return .finished
        }
    }

    private func follow(_ run: Run, _ known: RunHolder, whileDaemon: Bool) async throws -> RunEnd? {
        let (runs, observer) = (runs, observer)
        return try await observer.watching { observe in
            try await runs.follow(
                run.id, isCared: { whileDaemon ? try await runs.daemon() != nil : false }, known: known,
                changed: { observer.note("\($0.summary) has run \(run.id)") }, observe: observe)
        }
    }

    /// Throws if there is no daemon. A caller checks this before it creates a run that only a daemon would send.
    package static func requireDaemon(_ runs: FollowRuns) async throws {
        guard try await runs.daemon() == nil else { return }
        throw Failure(
            .tryAgain, "no daemon is running to take over the run; start `fanfare serve`, or omit --no-wait")
    }
}

extension RunEnd {
    /// Returns the failure to report to a caller that wanted the run to finish. `nil` if the run finished or was
    /// cancelled.
    ///
    /// - Parameter runs: finds the process that has a busy run.
    package func failure(of run: Run, _ runs: FollowRuns) -> Failure? {
        switch self {
        case .finished, .cancelled: nil
        case .noDeviceReached(let reason):
            Failure(
                .refused,
                "run \(run.id) finished without a push: \(reason); correct the audience or the texts, or set "
                    + "`success.min_accepted: 0` if that is expected")
        case .unsuccessful(let reason):
            Failure(
                .halted,
                "run \(run.id) finished without success: \(reason); check `fanfare report \(run.id)` before the "
                    + "campaign runs again")
        case .paused(let person, let reason):
            Failure(
                .tryAgain,
                "paused by \(person)\(reason.map { ": \($0)" } ?? ""); `fanfare resume \(run.id)` continues it")
        case .stoppedEarly:
            Failure(.tryAgain, "stopped early; run the same command again to continue")
        case .waiting(let moment):
            Failure(.tryAgain, "the rest is due at \(moment.iso8601); run the same command again then")
        case .busy(let owner, _):
            Failure(
                .tryAgain,
                "another process owns run \(run.id): \(runs.holder(owner).summary); wait for it, or run this again later"
            )
        case .unreachable(let reason):
            Failure(.unavailable, "paused: \(reason)")
        case .credentialRefused(let reason):
            Failure(.credentialRefused, "paused: \(reason)")
        case .breakerOpen(let reason):
            Failure(
                .halted,
                "run \(run.id) is paused by a breaker: \(reason); only `fanfare resume \(run.id)` continues it"
            )
        case .stopped(let order): Failure(.halted, "run \(run.id) is not sent: \(order.refusal)")
        case .late(let reason):
            Failure(.halted, "run \(run.id) is paused as late: \(reason)")
        case .halted(let reason), .awaitingApproval(let reason):
            Failure(.halted, "run \(run.id) is paused: \(reason)")
        case .missed(let reason):
            Failure(
                .refused,
                "run \(run.id), occurrence \(run.occurrence) of \(run.campaign), was missed: \(reason); "
                    + "`fanfare run \(run.campaign)` sends now")
        case .refused(let reason):
            Failure(
                .refused,
                "run \(run.id), occurrence \(run.occurrence) of \(run.campaign), was refused: \(reason); "
                    + "correct the cause, then use `fanfare run \(run.campaign)`")
        case .failed(let reason):
            Failure(.internalError, "run \(run.id) failed: \(reason)")
        }
    }
}
