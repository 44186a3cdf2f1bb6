package import Model
package import Sending
package import Store

/// Shows runs, and watches one that another process carries out.
package struct FollowRuns: Sendable {
    private static let lookInterval: Duration = .milliseconds(200)

    /// The latest runs, newest first, and the daemon if one is alive.
    package struct Overview: Sendable {
        package var runs: [Run]
        package var daemon: DaemonHeartbeat?

        package init(runs: [Run], daemon: DaemonHeartbeat?) {
            self.runs = runs
            self.daemon = daemon
        }

        package var result: RunListResult {
            RunListResult(daemon: daemon.map(DaemonResult.init), runs: runs.map(RunResult.init))
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

    /// Runs that paused themselves and wait for a person: late, or stopped by a breaker.
    package func halted() async throws -> [Run] { try await store.haltedRuns() }

    package func overview(limit: Int) async throws -> Overview {
        Overview(runs: try await store.runs(limit: limit), daemon: try await daemon())
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
            if let end = RunEnd(run) { return end }
            if run.owner.map(hasEnded) ?? true, try await !isCared() { return nil }
            await clock.sleep(Self.lookInterval)
            try Task.checkCancellation()
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
