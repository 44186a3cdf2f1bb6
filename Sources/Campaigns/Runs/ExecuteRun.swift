package import Model
package import Sending
package import Store

/// Brings a run to its end: by the daemon when there is one, which is told through the store, otherwise here.
package struct ExecuteRun: Sendable {
    /// What a front end shows meanwhile.
    package struct Observer: Sendable {
        package typealias Observe = @Sendable (DeliveryCounts, StoreWait?) -> Void
        /// Watches the run until it has ended, or nobody has it any more.
        package typealias Watch = @Sendable (@escaping Observe) async throws -> RunEnd?

        /// A sentence for the person who waits.
        package var note: @Sendable (String) -> Void
        /// Called while another process has the run: carries out the watch, and shows the accounts that it is told.
        package var watching: @Sendable (Watch) async throws -> RunEnd?

        package init(
            note: @escaping @Sendable (String) -> Void, watching: @escaping @Sendable (Watch) async throws -> RunEnd?
        ) {
            self.note = note
            self.watching = watching
        }
    }

    /// Each waits for some trust windows.
    private static let recoveriesMax = 2

    private let runs: FollowRuns
    private let observer: Observer
    private let wait: Bool?
    private let here: @Sendable (Run) async throws -> RunEnd

    /// - Parameters:
    ///   - wait: true: another process that has the run is waited for. False: the run is only handed over. Nil: only the
    ///     daemon is waited for.
    ///   - here: sends the run in this process.
    package init(
        runs: FollowRuns, observer: Observer, wait: Bool?, here: @escaping @Sendable (Run) async throws -> RunEnd
    ) {
        self.runs = runs
        self.observer = observer
        self.wait = wait
        self.here = here
    }

    /// Nil: it was handed over, and nobody was to wait. A run that is over, or waits for a person, is left as it is.
    ///
    /// - Parameter run: as it is on record now.
    package func execute(_ run: Run) async throws -> RunEnd? {
        let pause = RunEnd(run)
        // The daemon waits a while before it tries a run again that paused itself: a person who asks for it does not.
        if let pause, !pause.goesOnWithNextStart || wait == false { return pause }
        var recoveriesLeft = Self.recoveriesMax
        while true {
            if pause == nil, let daemon = try await runs.daemon() {
                let words = "run \(run.id) is in the hands of the daemon, \(daemon.holder.words)"
                if wait == false {
                    observer.note(words)
                    return nil
                }
                observer.note("\(words); it goes on there when this command is left")
                if let end = try await follow(run, daemon.holder, whileDaemon: true) { return end }
                continue
            }
            let end = try await sendHere(run)
            guard case .busy(let owner, _) = end, wait != false else { return end }
            let holder = runs.holder(owner)
            // The first heartbeat of a process that was killed may be committed after it was looked for.
            if holder.state == .ended, recoveriesLeft > 0 {
                recoveriesLeft -= 1
                for found in try await runs.recoverAbandoned() { observer.note(found.words) }
                continue
            }
            // It may have tried a run again that paused itself, since the look above.
            let isDaemon = try await runs.daemon()?.holder.process == holder.process
            guard isDaemon || wait == true else { return end }
            observer.note("waiting for \(holder.words), which has run \(run.id)")
            if let end = try await follow(run, holder, whileDaemon: isDaemon) { return end }
        }
    }

    /// Somebody else may have brought it to its end meanwhile.
    private func sendHere(_ run: Run) async throws -> RunEnd {
        do {
            return try await here(run)
        } catch StoreError.runIsOver(let run, let state) {
            guard let end = try await runs.run(run).flatMap({ RunEnd($0) }) else {
                throw StoreError.runIsOver(run: run, state: state)
            }
            return end
        }
    }

    private func follow(_ run: Run, _ known: RunHolder, whileDaemon: Bool) async throws -> RunEnd? {
        let (runs, observer) = (runs, observer)
        return try await observer.watching { observe in
            try await runs.follow(
                run.id, isCared: { whileDaemon ? try await runs.daemon() != nil : false }, known: known,
                changed: { observer.note("\($0.words) has run \(run.id)") }, observe: observe)
        }
    }

    /// To be asked before a run is made that nobody would carry out.
    package static func requireDaemon(_ runs: FollowRuns) async throws {
        guard try await runs.daemon() == nil else { return }
        throw Failure(
            .tryAgain, "no daemon is there to hand the run over to; start `fanfare serve`, or leave out --no-wait")
    }
}

extension RunEnd {
    /// What a caller that wanted the run done is told; nil when it is done.
    ///
    /// - Parameter runs: knows who has a run that is busy.
    package func failure(of run: Run, _ runs: FollowRuns) -> Failure? {
        switch self {
        case .finished, .cancelled: nil
        case .nobodyReached(let reason):
            Failure(
                .refused,
                "run \(run.id) finished without a push: \(reason); correct the audience or the texts, or set "
                    + "`success.min_accepted: 0` if that is expected")
        case .unsuccessful(let reason):
            Failure(
                .halted,
                "run \(run.id) finished without success: \(reason); look at `fanfare report \(run.id)` before the campaign "
                    + "runs again")
        case .paused(let person, let reason):
            Failure(
                .tryAgain,
                "paused by \(person)\(reason.map { ": \($0)" } ?? ""); `fanfare resume \(run.id)` goes on with it")
        case .stoppedEarly:
            Failure(.tryAgain, "stopped before the end; run the same command again to go on")
        case .waiting(let moment):
            Failure(.tryAgain, "the rest is due at \(moment.iso8601); run the same command again then")
        case .busy(let owner, _):
            Failure(
                .tryAgain,
                "another process has run \(run.id): \(runs.holder(owner).words); wait for it, or run this again later")
        case .unreachable(let reason):
            Failure(.unavailable, "paused: \(reason)")
        case .credentialRefused(let reason):
            Failure(.credentialRefused, "paused: \(reason)")
        case .breakerOpen(let reason):
            Failure(
                .halted,
                "run \(run.id) is paused by a breaker: \(reason); nothing goes on with it but `fanfare resume \(run.id)`"
            )
        case .stopped(let order): Failure(.halted, "run \(run.id) is not sent: \(order.refusal)")
        case .late(let reason):
            Failure(.halted, "run \(run.id) is paused as late: \(reason)")
        case .halted(let reason), .awaitingApproval(let reason):
            Failure(.halted, "run \(run.id) is paused: \(reason)")
        case .missed(let reason):
            Failure(
                .refused,
                "run \(run.id), occurrence \(run.occurrence) of \(run.campaign), is missed: \(reason); leave out "
                    + "--occurrence to send now")
        case .refused(let reason):
            Failure(
                .refused,
                "run \(run.id), occurrence \(run.occurrence) of \(run.campaign), was refused: \(reason); leave out "
                    + "--occurrence to send now")
        case .failed(let reason):
            Failure(.internalError, "run \(run.id) failed: \(reason)")
        }
    }
}
