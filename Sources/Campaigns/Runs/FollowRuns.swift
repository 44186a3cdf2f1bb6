package import Model
package import Sending
package import Store

/// Shows runs, and watches one that another process carries out.
package struct FollowRuns: Sendable {
    private static let lookInterval: Duration = .milliseconds(200)
    private static let clockStepShown: Duration = .seconds(86_400)
    /// Of a run, in which the latest recovery is looked for.
    private static let eventsMax = 1000

    /// A run, and the process that has it.
    package struct Held: Sendable {
        package var run: Run
        /// Nil: nobody has it.
        package var holder: RunHolder?
        /// What it waits for, where somebody asked.
        package var waits = RunWaits()
        /// What was last put in order after a sender that had ended, where somebody asked.
        package var recovery: StoreEvent?
        /// How far its stages have come, where somebody asked.
        package var stages: [StageRecord] = []
        /// Who started it without its signatures, where somebody asked.
        package var brokenGlass: BrokenGlass?

        /// Whether the run is to be sent now and no process has it.
        package var isLeft: Bool { run.state == .running && holder == nil }

        package var result: RunResult {
            RunResult(run, heldBy: holder, waits, recovery, stages: stages, brokenGlass: brokenGlass)
        }
    }

    /// The latest runs, newest first, and the daemon if one is alive.
    package struct Overview: Sendable {
        package var runs: [Held]
        package var daemon: Daemon?
        /// The wall clock was set within the last day.
        package var clockStep: ClockStep?
        /// Of a store that machines share: who sends, and who did and was heard of lately.
        package var senders: [SenderOnRecord]?
        /// Runs whose rows cannot be read, which are not among ``runs``.
        package var unreadable: [UnreadableRun] = []

        package var result: RunListResult {
            RunListResult(
                daemon: daemon.map { DaemonResult($0.heartbeat, heldBy: $0.holder) }, runs: runs.map(\.result),
                clockStep: clockStep.map(ClockStepResult.init), senders: senders.map(SenderResult.all),
                unreadable: unreadable.isEmpty ? nil : unreadable.map(UnreadableRunResult.init))
        }
    }

    /// The daemon, as it wrote itself down and as its process is.
    package struct Daemon: Sendable {
        package var heartbeat: DaemonHeartbeat
        package var holder: RunHolder
    }

    private let store: any RunLog & DaemonLog & StopLog
    private let senders: SenderFolder
    private let clock: WallClock
    private let recovery: Recovery

    package init(store: any SendingStore & DaemonLog, senders: SenderFolder, clock: WallClock) {
        self.store = store
        self.senders = senders
        self.clock = clock
        recovery = Recovery(store: store, journals: senders.journals(of: store), clock: clock)
    }

    package var now: Timestamp { clock.now() }

    /// Records a step of the wall clock that no process has noticed yet.
    package func noteClock(by actor: Actor) async throws {
        _ = try await store.noteClocks(clock.reading(), by: actor)
    }

    /// Settles what processes that ended left in flight. To be asked by whoever is about to
    /// send, pause, resume or cancel.
    package func recoverAbandoned() async throws -> [AbandonedRun] {
        if let copied = try await recovery.waitForEnded() {
            throw SendingError.folderCopied(path: senders.path, sender: ProcessName.shown(copied))
        }
        return try await recovery.recoverAbandoned()
    }

    /// Waits while senders of other machines that left work get time to come back after an outage of the store; a takeover
    /// timeout at most.
    package func waitForQuietTime() async throws {
        guard let left = try await store.quietTimeLeft() else { return }
        await clock.sleep(left + .milliseconds(100))
    }

    /// Returns what ``recoverAbandoned()`` would put in order, for a command that only reads.
    package func leftInFlight() async throws -> [LeftRun] {
        // A sender that ended a moment ago still counts as alive. That a folder is a copy matters to senders alone.
        _ = try await recovery.waitForEnded()
        var left: [LeftRun] = []
        for run in try await store.abandonedRuns() {
            left.append(LeftRun(run: run.id, owner: run.owner, leased: run.counts.leased))
        }
        return left
    }

    /// The run of this number; nil when there is none.
    package func run(_ id: Int64) async throws -> Run? { try await store.run(id) }

    /// In force, on record or by the file.
    package func stops() async throws -> StopOrders {
        StopOrders(try await store.stops().orders + senders.stopFile.read().orders)
    }

    /// Runs that paused themselves and wait for a person: late, or stopped by a breaker.
    package func halted() async throws -> [Run] { try await store.haltedRuns() }

    package func overview(limit: Int) async throws -> Overview {
        var overview = try await overview(store.runs(limit: limit))
        overview.unreadable = try await store.unreadableRuns()
        return overview
    }

    /// How many senders are at a run besides the one that has it.
    package func others(at run: Run) async throws -> Int {
        try await store.company(of: run.id, apartFrom: run.owner ?? "").others
    }

    /// What a run that is not over waits for.
    package func waits(of run: Run) async throws -> RunWaits {
        run.state.isFinal ? RunWaits() : try await store.waits(of: run.id, now: clock.now())
    }

    /// The last time that somebody set the wall clock, within a day.
    package func clockStep() async throws -> ClockStep? {
        try await store.clockSteps(since: clock.now() - Self.clockStepShown).last
    }

    /// The same of one run.
    package func overview(of run: Int64) async throws -> Overview {
        try await overview([store.run(run)].compactMap(\.self))
    }

    private func overview(_ runs: [Run]) async throws -> Overview {
        let sharing = try await sharing()
        var found: [Held] = []
        for run in runs {
            var held = held(run, sharing)
            if run.state == .running, held.holder != nil { held.waits.holds = try await store.holds(of: run.id) }
            found.append(held)
        }
        return Overview(
            runs: found, daemon: try await daemon(sharing), clockStep: try await clockStep(),
            senders: sharing)
    }

    /// Nil where one machine has the store for itself.
    private func sharing() async throws -> [SenderOnRecord]? { store.isShared ? try await store.senders() : nil }

    /// The run with the process that has it, as that is now.
    package func held(_ run: Run) -> Held { held(run, nil) }

    private func held(_ run: Run, _ sharing: [SenderOnRecord]?) -> Held {
        Held(run: run, holder: run.owner.map { holder($0, sharing) })
    }

    /// - Parameter sharing: by what the store knows of senders of other machines.
    private func holder(_ owner: String, _ sharing: [SenderOnRecord]?) -> RunHolder {
        senders.holder(owner).told(by: sharing?.first { $0.name == owner })
    }

    /// The same with what it waits for and what was put in order.
    package func inDetail(_ run: Run) async throws -> Held {
        var held = held(run, try await sharing())
        held.waits = try await waits(of: run)
        if run.definition.campaign.stages != nil { held.stages = try await store.stages(of: run.id) }
        held.recovery = try await store.events(run: run.id, since: nil, limit: Self.eventsMax)
            .last { $0.kind == EventKind.runRecovered.rawValue }
        held.brokenGlass = try await brokenGlass(of: run)
        return held
    }

    /// Nil: it had its signatures, or needed none.
    package func brokenGlass(of run: Run) async throws -> BrokenGlass? { try await BrokenGlass.of(run, in: store) }

    /// Who that is, for a person.
    package func holder(_ owner: String) -> RunHolder { senders.holder(owner) }

    /// The daemon that is alive on the store, if there is one.
    package func daemon() async throws -> Daemon? { try await daemon(sharing()) }

    private func daemon(_ sharing: [SenderOnRecord]?) async throws -> Daemon? {
        try await store.daemon().map { Daemon(heartbeat: $0, holder: holder($0.owner, sharing)) }
    }

    /// Watches a run until it has ended. Nil when nobody has it in hand any more, so that somebody else must go on.
    ///
    /// - Parameters:
    ///   - isCared: whether somebody will take it up; asked while nobody has it.
    ///   - known: the process that has it, as it was last told of.
    ///   - changed: told of that process when it is stopped, or goes on.
    ///   - observe: told the account at each look, and since when the sender has waited for the store.
    package func follow(
        _ id: Int64, isCared: @Sendable () async throws -> Bool, known: RunHolder?,
        changed: @Sendable (RunHolder) -> Void, observe: @Sendable (DeliveryCounts, StoreWait?) -> Void
    ) async throws -> RunEnd? {
        var last = known
        while true {
            guard let run = try await store.run(id) else { throw SendingError.runVanished(id) }
            let holder = run.owner.map(senders.holder)
            observe(run.counts, holder?.storeWait)
            if let end = RunEnd(run) { return end }
            if holder?.state ?? .ended == .ended, try await !isCared() { return nil }
            if let holder, let last, holder.process == last.process, holder.state != last.state { changed(holder) }
            last = holder ?? last
            await clock.sleep(Self.lookInterval)
            try Task.checkCancellation()
        }
    }
}

/// A run whose sender has ended without giving it up, as it stands until somebody who may write puts it in order.
package struct LeftRun: Hashable, Sendable {
    package var run: Int64
    /// Nil: it was cancelled, and nobody has ended it yet.
    package var owner: String?
    package var leased: Int

    package var words: String {
        let counted = leased.counted("delivery still counts", "deliveries still count")
        let rest = leased > 0 ? "\(counted) as in flight" : "nothing was in flight"
        let what = owner.map { "was left by \(ProcessName.shown($0)), which has ended: \(rest)" }
        return "run \(run) \(what ?? "was cancelled, and what is left of it still counts as pending"); "
            + "whoever next sends, pauses, resumes or cancels a run puts that in order, this command only reads"
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
            .notFound, "no run of a campaign \"\(text)\" in the store; `fanfare status` lists the runs there are")
    }
}
