package import Model
package import Senders
package import Sending
package import Store

/// Shows runs, and watches a run that another process sends.
package struct FollowRuns: Sendable {
    private static let lookInterval: Duration = .milliseconds(200)
    private static let clockStepShown: Duration = .seconds(86_400)
    /// The number of a run's latest events that are searched for its latest recovery.
    private static let eventsMax = 1000

    /// A run, and the process that has it.
    package struct Held: Sendable {
        package var run: Run
        /// `nil` if no process has the run.
        package var holder: RunHolder?
        /// The waits of the run, if requested.
        package var waits = RunWaits()
        /// The latest recovery after a sender of the run ended, if requested.
        package var recovery: StoreEvent?
        /// The progress of the run's stages, if requested.
        package var stages: [StageRecord] = []
        /// The emergency override that started the run, if requested.
        package var emergencyOverride: EmergencyOverride?

        /// Whether the run should be in progress, but no process has it.
        package var isLeft: Bool { run.state == .running && holder == nil }

        package var result: RunResult {
            RunResult(run, heldBy: holder, waits, recovery, stages: stages, emergencyOverride: emergencyOverride)
        }
    }

    /// The latest runs, newest first, and the daemon if one is alive.
    package struct Overview: Sendable {
        package var runs: [Held]
        package var daemon: Daemon?
        /// The last step of the wall clock within a day.
        package var clockStep: ClockStep?
        /// The present and recent senders of a store that machines share; `nil` if the store belongs to one machine.
        package var senders: [SenderOnRecord]?
        /// The runs whose rows cannot be read. They are not in ``runs``.
        package var unreadable: [UnreadableRun] = []

        package var result: RunListResult {
            RunListResult(
                daemon: daemon.map { DaemonResult($0.heartbeat, heldBy: $0.holder) }, runs: runs.map(\.result),
                clockStep: clockStep.map(ClockStepResult.init), senders: senders.map(SenderResult.all),
                unreadable: unreadable.isEmpty ? nil : unreadable.map(UnreadableRunResult.init))
        }
    }

    /// The daemon, with its own record and the state of its process.
    package struct Daemon: Sendable {
        package var heartbeat: DaemonHeartbeat
        package var holder: RunHolder

        /// Whether the daemon takes up runs, as far as this process can see.
        package var takesUpRuns: Bool { holder.state == .running || holder.state == .unseen }
    }

    private let store: any RunLog & RunOwnership & AuditLog & DaemonLog & StopLog
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

    /// Settles the deliveries in flight of processes that have exited. A command that sends, pauses, resumes or cancels
    /// calls this first.
    package func recoverAbandoned() async throws -> [AbandonedRun] {
        if let copied = try await recovery.waitForEnded() {
            throw SenderError.folderCopied(path: senders.path, sender: ProcessName.shown(copied))
        }
        return try await recovery.recoverAbandoned()
    }

    /// Waits after an outage of the store, because senders of other machines may still return to their unfinished
    /// work. The wait is at most one takeover timeout.
    package func waitForQuietTime() async throws {
        guard let left = try await store.quietTimeLeft() else { return }
        await clock.sleep(left + .milliseconds(100))
    }

    /// Returns the runs that ``recoverAbandoned()`` would recover, for a command that only reads.
    package func leftInFlight() async throws -> [LeftRun] {
        // A sender that has just exited still counts as alive, so wait. Ignore a copied folder, which matters only
        // to senders.
        _ = try await recovery.waitForEnded()
        var left: [LeftRun] = []
        for run in try await store.abandonedRuns() {
            left.append(LeftRun(run: run.id, owner: run.owner, leased: run.counts.leased))
        }
        return left
    }

    /// Returns the run with this number, or `nil` if there is none.
    package func run(_ id: Int64) async throws -> Run? { try await store.run(id) }

    /// Returns the stops in force, of the store and of the stop file.
    package func stops() async throws -> StopOrders {
        StopOrders(try await store.stops().orders + senders.stopFile.read().orders)
    }

    /// Returns the runs that paused themselves and wait for a person, see ``RunHalt/waitsForPerson``.
    package func halted() async throws -> [Run] { try await store.haltedRuns() }

    /// Returns the runs with a stage that waits until a person approves it, the oldest first.
    package func runsAwaitingApproval() async throws -> [Run] { try await halted().filter { $0.halt == .approval } }

    /// Returns the stages that wait until a person approves them, of the oldest run first.
    ///
    /// - Parameter sees: whether the caller may see an app's runs.
    package func waitingStages(
        sees: (_ topic: String) -> Bool = { _ in true }
    ) async throws -> [WaitingStageResult] {
        var found: [WaitingStageResult] = []
        for run in try await runsAwaitingApproval() where sees(run.definition.campaign.topic) {
            let stages = try await inDetail(run).result.stages ?? []
            guard let stage = stages.first(where: { $0.openedAt == nil }) else { continue }
            found.append(WaitingStageResult(run, stage, among: stages))
        }
        return found
    }

    /// Returns runs that ended in one of these states since a time, the latest first. Looks at the latest hundred that
    /// were created in the week before that time.
    package func ended(in states: Set<RunState>, since moment: Timestamp) async throws -> [Run] {
        let filter = RunFilter(states: states, createdFrom: moment - .seconds(7 * 86_400))
        return try await store.runs(filter, before: nil, limit: 100)
            .filter { $0.finishedAt ?? $0.createdAt >= moment }
    }

    /// Returns whether a run is being sent or is about to be, or whether the daemon starts one within this time.
    package func isSending(orWithin soon: Duration) async throws -> Bool {
        let open = RunFilter(states: [.running, .scheduled], includesTests: true)
        if try await !store.runs(open, before: nil, limit: 1).isEmpty { return true }
        guard let next = try await store.daemon()?.status.nextStart else { return false }
        let now = clock.now()
        return next > now - soon && next <= now + soon
    }

    package func overview(limit: Int) async throws -> Overview {
        var overview = try await overview(store.runs(limit: limit))
        overview.unreadable = try await store.unreadableRuns()
        return overview
    }

    /// Returns the number of senders that take part in a run, besides its owner.
    package func others(at run: Run) async throws -> Int {
        try await store.participants(of: run.id, apartFrom: run.owner ?? "").others
    }

    /// Returns the waits of a run that is not over.
    package func waits(of run: Run) async throws -> RunWaits {
        run.state.isFinal ? RunWaits() : try await store.waits(of: run.id, now: clock.now())
    }

    /// Returns the last step of the wall clock within a day.
    package func clockStep() async throws -> ClockStep? {
        try await store.clockSteps(since: clock.now() - Self.clockStepShown).last
    }

    /// Returns the overview of one run.
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

    /// Returns the senders of a shared store. `nil` if the store belongs to one machine.
    private func sharing() async throws -> [SenderOnRecord]? { store.isShared ? try await store.senders() : nil }

    /// Returns the run with the current state of the process that has it.
    package func held(_ run: Run) -> Held { held(run, nil) }

    private func held(_ run: Run, _ sharing: [SenderOnRecord]?) -> Held {
        Held(run: run, holder: run.owner.map { holder($0, sharing) })
    }

    /// - Parameter sharing: the senders of other machines, as the store has recorded them.
    private func holder(_ owner: String, _ sharing: [SenderOnRecord]?) -> RunHolder {
        senders.holder(owner).told(by: sharing?.first { $0.name == owner })
    }

    /// Returns the run with its process, its waits, its stages, its latest recovery and its emergency override.
    package func inDetail(_ run: Run) async throws -> Held {
        var held = held(run, try await sharing())
        held.waits = try await waits(of: run)
        if run.definition.campaign.stages != nil { held.stages = try await store.stages(of: run.id) }
        held.recovery = try await store.events(run: run.id, since: nil, limit: Self.eventsMax)
            .last { $0.kind == EventKind.runRecovered.rawValue }
        held.emergencyOverride = try await emergencyOverride(of: run)
        return held
    }

    /// Returns the emergency override of a run. `nil` if the run had its approvals, or needed none.
    package func emergencyOverride(of run: Run) async throws -> EmergencyOverride? {
        try await EmergencyOverride.of(run, in: store)
    }

    /// Returns the process behind an owner's name, and its state.
    package func holder(_ owner: String) -> RunHolder { senders.holder(owner) }

    /// Returns the daemon that is alive on the store, if there is one.
    package func daemon() async throws -> Daemon? { try await daemon(sharing()) }

    private func daemon(_ sharing: [SenderOnRecord]?) async throws -> Daemon? {
        try await store.daemon().map { Daemon(heartbeat: $0, holder: holder($0.owner, sharing)) }
    }

    /// Watches a run until it ends. Returns `nil` if no process has the run and none will take it up: the caller must
    /// continue it.
    ///
    /// - Parameters:
    ///   - isCared: whether another process will take up the run; called while no process has it.
    ///   - known: the process that has the run, as last reported.
    ///   - changed: receives that process when a signal stops or continues it.
    ///   - observe: receives, at each look, the counts and the sender's wait for the store.
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

/// A run whose sender exited without releasing it, and that no process has recovered yet.
package struct LeftRun: Hashable, Sendable {
    package var run: Int64
    /// `nil` if the run was cancelled, and no process has ended it yet.
    package var owner: String?
    package var leased: Int

    package var summary: String {
        let counted = leased.counted("delivery still counts", "deliveries still count")
        let rest = leased > 0 ? "\(counted) as in flight" : "nothing was in flight"
        let what = owner.map {
            "was abandoned by \(ProcessName.shown($0)), which has exited or no longer responds: \(rest)"
        }
        return "run \(run) \(what ?? "was cancelled, but its remaining deliveries still count as pending"); "
            + "the next command that sends, pauses, resumes or cancels a run recovers the run; this command only reads"
    }
}

/// Finds the run that a person means.
package enum RunLookup {
    /// - Parameter text: `7`, `new-podcast` or `new-podcast/episode-42`.
    package static func run(_ text: String, in store: any RunLog) async throws -> Run {
        if let id = Int64(text) {
            guard let run = try await store.run(id) else {
                throw Failure(.notFound, "no run \(id) in the store; `fanfare status` lists the runs")
            }
            return run
        }
        if let run = try await store.latestRun(campaign: text) { return run }
        let parts = text.split(separator: "/", maxSplits: 1).map(String.init)
        if parts.count == 2 {
            if let run = try await store.run(campaign: parts[0], occurrence: parts[1]) { return run }
            throw Failure(
                .notFound,
                "no run of \(parts[0]) for the occurrence \(parts[1]) in the store; `fanfare status` lists the runs")
        }
        throw Failure(
            .notFound, "no run of a campaign \"\(text)\" in the store; `fanfare status` lists the runs")
    }
}
