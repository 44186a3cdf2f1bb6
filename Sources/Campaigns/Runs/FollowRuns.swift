package import Model
package import Sending
package import Store

/// Shows runs, and watches one that another process carries out.
package struct FollowRuns: Sendable {
    private static let lookInterval: Duration = .milliseconds(200)
    private static let clockStepShown: Duration = .seconds(86_400)

    /// The latest runs, newest first, and the daemon if one is alive.
    package struct Overview: Sendable {
        package var runs: [Run]
        package var daemon: DaemonHeartbeat?
        /// The wall clock was set within the last day.
        package var clockStep: ClockStep?

        package init(runs: [Run], daemon: DaemonHeartbeat?, clockStep: ClockStep? = nil) {
            self.runs = runs
            self.daemon = daemon
            self.clockStep = clockStep
        }

        package var result: RunListResult {
            RunListResult(
                daemon: daemon.map(DaemonResult.init), runs: runs.map { RunResult($0) },
                clockStep: clockStep.map(ClockStepResult.init))
        }
    }

    private let store: any RunLog & DaemonLog
    private let clock: WallClock
    private let hasEnded: @Sendable (String) -> Bool

    /// - Parameter hasEnded: whether the process behind an owner's name has ended for certain.
    package init(store: any RunLog & DaemonLog, clock: WallClock, hasEnded: @escaping @Sendable (String) -> Bool) {
        self.store = store
        self.clock = clock
        self.hasEnded = hasEnded
    }

    /// Settles what processes that ended left in flight. To be asked before anything is said about runs.
    package func recoverAbandoned() async throws -> [AbandonedRun] {
        try await store.recoverAbandoned(now: clock.now())
    }

    /// The run of this number; nil when there is none.
    package func run(_ id: Int64) async throws -> Run? { try await store.run(id) }

    package func overview(limit: Int) async throws -> Overview {
        Overview(
            runs: try await store.runs(limit: limit), daemon: try await daemon(), clockStep: try await clockStep())
    }

    /// What a run that is not over waits for.
    package func waits(of run: Run) async throws -> RunWaits {
        run.state.isFinal ? RunWaits() : try await store.waits(of: run.id, now: clock.now())
    }

    /// The last time that somebody set the wall clock, within a day.
    package func clockStep() async throws -> ClockStep? {
        try await store.clockSteps(since: clock.now() - Self.clockStepShown).last
    }

    /// The daemon that is alive on the store, if there is one.
    package func daemon() async throws -> DaemonHeartbeat? {
        try await store.daemon(now: clock.now(), staleAfter: OwnerLiveness.staleAfter)
    }

    /// Watches a run until it has ended. Nil when nobody has it in hand any more, so that somebody else must go on.
    ///
    /// - Parameters:
    ///   - isCared: whether somebody will take it up; asked while nobody has it.
    ///   - observe: told the account at each look.
    package func follow(
        _ id: Int64, isCared: @Sendable () async throws -> Bool, observe: @Sendable (DeliveryCounts) -> Void
    ) async throws -> RunEnd? {
        while true {
            guard let run = try await store.run(id) else { throw SendingError.runVanished(id) }
            observe(run.counts)
            if let end = try Self.end(of: run) { return end }
            if run.owner.map(hasEnded) ?? true, try await !isCared() { return nil }
            await clock.sleep(Self.lookInterval)
            try Task.checkCancellation()
        }
    }

    private static func end(of run: Run) throws -> RunEnd? {
        switch run.state {
        case .finished: return .finished
        case .cancelled: return .cancelled
        case .scheduled, .running: return nil
        case .missed: throw Failure(.refused, "run \(run.id) was missed: \(run.stateReason ?? "too late")")
        case .failed: throw Failure(.internalError, "run \(run.id) failed: \(run.stateReason ?? "no reason given")")
        case .paused:
            if let person = run.pausedBy { return .paused(by: person, reason: run.stateReason) }
            let reason = run.stateReason ?? "no reason given"
            switch run.halt {
            case .credential: return .credentialRefused(reason)
            case .breaker: return .breakerOpen(reason)
            case .unreachable, nil: return .unreachable(reason)
            }
        }
    }
}

/// The run a person means.
package enum RunLookup {
    /// - Parameter text: `7`, `new-podcast` or `new-podcast/episode-42`.
    package static func run(_ text: String, in store: any RunLog) async throws -> Run {
        if let id = Int64(text) {
            guard let run = try await store.run(id) else {
                throw Failure(.notFound, "no run \(id) in the store; `fanfare status` lists them")
            }
            return run
        }
        if let run = try await store.latestRun(campaign: text) { return run }
        let parts = text.split(separator: "/", maxSplits: 1).map(String.init)
        if parts.count == 2 {
            if let run = try await store.run(campaign: parts[0], occurrence: parts[1]) { return run }
            throw Failure(
                .notFound,
                "no run of \(parts[0]) for the occurrence \(parts[1]) in the store; `fanfare status` lists them")
        }
        throw Failure(
            .notFound, "no run of a campaign \"\(text)\" in the store; start one with `fanfare run \(text)`")
    }
}
