package import Campaigns
package import Logging
package import Model
import Platform
import Senders
package import Sending
package import Store
import Synchronization
package import WebClient

/// Starts what the campaigns' schedules say, and executes every open run without a living owner. Such a run was created
/// by hand, by a timer or by the scheduler, or left behind by a process that has ended.
///
///     campaign files -> agenda -> due runs -.
///                    runs made elsewhere ---+-> lanes of their app -> outcomes
///
/// Runs are handed over only through the store. The clock is a parameter.
package struct Scheduler: Sendable {
    /// The current content of the campaign files.
    package struct CampaignSnapshot: Sendable {
        package var campaigns: [ReadyCampaign]
        /// The campaigns in the folder, with or without errors, so that the schedule mark of a broken file is kept.
        package var names: Set<String>
        package var problems: [DaemonStatus.Problem]
        /// The SHA-256 hashes, in hex, of the files that were read again, by path. The audit records them.
        package var hashes: [String: String]
        /// The hash of all campaigns and templates, to compare them with those of other machines.
        package var filesHash: String?

        package init(
            campaigns: [ReadyCampaign], names: Set<String>, problems: [DaemonStatus.Problem] = [],
            hashes: [String: String] = [:], filesHash: String? = nil
        ) {
            self.filesHash = filesHash
            self.campaigns = campaigns
            self.names = names
            self.problems = problems
            self.hashes = hashes
        }
    }

    /// The intervals of the daemon's loops.
    package struct DaemonIntervals: Sendable {
        /// The time between two checks for runs that other processes created.
        package var lookEvery: Duration = .milliseconds(500)
        package var heartbeatEvery: Duration = .seconds(3)
        /// The time between two checks for runs that no sender continues.
        package var recoverEvery: Duration = .seconds(5)
        /// The maximum time between two reads of the wall clock, because the clock may be set meanwhile.
        package var sleepMax: Duration = .seconds(20)
        /// The first pause before a run that could not be carried out is tried again.
        package var holdOff: Duration = .seconds(30)
        /// See ``DueRuns/countLimit``.
        package var countLimit = DueRuns.countLimit
        package init() {}
    }

    /// The time between two attempts to become the coordinator.
    private static let postInterval: Duration = .seconds(1)
    /// The time between two checks whether waiting occurrences have been approved.
    static let approvalInterval: Duration = .seconds(2)
    /// The time after which the daemon counts as hung. It exceeds the store's busy time, because a slow store is no
    /// hang.
    private static let hungAfter: Duration = .seconds(60)

    let store: any AllRoles
    let senders: LocalSender
    let actor: Actor
    let clock: WallClock
    let intervals: DaemonIntervals
    let logger: Logger
    let tracker = DaemonStatusTracker()
    let supervisor: Supervisor
    let approvals: @Sendable () -> ApprovalRules?
    let brake: @Sendable () -> Configuration.VolumeBrake?
    let feeds: FeedWatch
    private let maintenance: Maintenance
    private let waitingFeedback: WaitingFeedbackRecorder

    /// - Parameters:
    ///   - web: fetches the feeds.
    ///   - retention: returns how long data is kept; called every night.
    ///   - approvals: returns the rules for the approvals that a run needs; called for each run.
    ///   - brake: returns the volume above which a run waits for a person; called for each run.
    ///   - supervisor: restarts the daemon's parts after errors; `nil` creates a new supervisor.
    package init(
        store: any AllRoles, senders: LocalSender, actor: Actor, clock: WallClock,
        intervals: DaemonIntervals = DaemonIntervals(), web: HTTPClient,
        retention: @escaping @Sendable () -> Configuration.Retention,
        approvals: @escaping @Sendable () -> ApprovalRules? = { nil },
        brake: @escaping @Sendable () -> Configuration.VolumeBrake? = { nil }, supervisor: Supervisor? = nil,
        logger: Logger
    ) {
        self.supervisor = supervisor ?? Supervisor(owner: actor.name, clock: clock, logger: logger)
        self.brake = brake
        self.approvals = approvals
        self.store = store
        self.senders = senders
        self.actor = actor
        self.clock = clock
        self.intervals = intervals
        self.logger = logger
        feeds = FeedWatch(
            poller: FeedPoller(store: store, web: web, actor: actor, approvals: approvals, brake: brake),
            tracker: tracker, clock: clock,
            time: ConfirmedClock(store: store, clock: clock, actor: actor, logger: logger),
            sleepMax: intervals.sleepMax, countLimit: intervals.countLimit, logger: logger)
        maintenance = Maintenance(
            store: store, actor: actor, retention: retention, approvals: approvals, clock: clock,
            sleepMax: intervals.sleepMax, logger: logger)
        waitingFeedback = WaitingFeedbackRecorder(store: store, clock: clock, lookEvery: intervals.lookEvery) {
            [tracker] in tracker.isSending
        }
    }

    /// The current status of the daemon.
    package var status: DaemonStatus { tracker.status }

    /// Whether this daemon starts what is due. Only one daemon of a store does so.
    package var isCoordinator: Bool { tracker.isCoordinator }
    /// Whether this process has a run to send.
    package var isSending: Bool { tracker.isSending }
    package var stopsInForce: StopOrders { senders.knownStops }

    /// Whether the daemon's loop has run recently. `false` means that a part of the daemon hangs.
    package var isAlive: Bool { tracker.loopedAt.map { clock.uptime() - $0 < Self.hungAfter } ?? true }

    /// The reason why the daemon is not ready: the store has not accepted its last heartbeat. `nil` if it is ready.
    package var unready: String? { tracker.unwritable(at: clock.uptime()) }

    /// Endpoints that give this process no responses. Pages and API still work, so that a person can stop a campaign.
    package var outages: [EndpointOutage] { senders.outages }

    /// Works until cancelled, then stops the runs gracefully. The next start of a daemon continues them. After its
    /// own start, this method throws only for a reason in ``DaemonEnd``.
    ///
    /// On a store that machines share, one daemon is the coordinator. The others only send, and wait to take over the
    /// role. On a store of one machine, this throws ``SenderError/otherDaemon(_:)`` if another daemon is alive.
    package func run(_ snapshots: AsyncStream<CampaignSnapshot>) async throws {
        if let other = try await store.becomeDaemon(owner: actor.name, now: clock.now()) {
            guard store.isShared else { throw SenderError.otherDaemon(ProcessName.shown(other.owner)) }
            logger.info("another daemon coordinates", metadata: .facts([.reason: "\(ProcessName.shown(other.owner))"]))
        } else {
            tracker.becameCoordinator()
        }
        let (runs, launches) = AsyncStream.makeStream(of: Run.self)
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await senders.work() }
                group.addTask { for await snapshot in snapshots { try await apply(snapshot) } }
                group.addTask { try await coordinate(launches) }
                group.addTask { try await lookForRuns(launches) }
                group.addTask { try await recover() }
                group.addTask { try await heartbeat() }
                group.addTask { await execute(runs) }
                group.addTask { try await supervisor.keep(.feedback) { try await waitingFeedback.run() } }
                defer { launches.finish() }
                // An error of any part ends all parts, see DaemonEnd.
                while try await group.next() != nil {}
            }
        } catch is CancellationError {}
        senders.close()
        try await resign()
        logger.info("stopped")
    }
}

extension Scheduler {
    private func apply(_ snapshot: CampaignSnapshot) async throws {
        try await supervisor.keep(.files) {
            try await adopt(snapshot)
            // A person who has just changed a file may look for the result, so write the status now.
            if tracker.isCoordinator {
                _ = try await store.daemonHeartbeat(owner: actor.name, tracker.status, now: clock.now())
            }
        }
    }

    /// Removes the daemon's row. A store that accepts nothing now is no reason to exit with an error, because the row
    /// of an exited process blocks no other daemon. A server that refuses the password is a reason: the next start
    /// would fail as well.
    private func resign() async throws {
        do {
            try await store.resignDaemon(owner: actor.name)
        } catch {
            switch error {
            case StoreError.accessRefused, StoreError.accessWithdrawn: throw error
            default: break
            }
            logger.error(
                "the daemon's row was not removed; the next daemon replaces it",
                metadata: .facts([.error: "\(error)"]))
        }
    }

    /// Does the work that only one daemon of a store does: starts what is due, polls feeds and maintains the store.
    private func coordinate(_ launches: AsyncStream<Run>.Continuation) async throws {
        try await supervisor.keep(.coordinator) {
            while !tracker.isCoordinator {
                await clock.sleep(Self.postInterval)
                guard !Task.isCancelled else { return }
                guard try await store.becomeDaemon(owner: actor.name, now: clock.now()) == nil else { continue }
                tracker.becameCoordinator()
                if let snapshot = tracker.snapshot { try await apply(snapshot) }
                logger.notice("this daemon now coordinates")
            }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await startDue(launches) }
            group.addTask { try await feeds.run(supervisor) }
            group.addTask { try await supervisor.keep(.maintenance) { await maintenance.run() } }
            while try await group.next() != nil {}
        }
    }

    func adopt(_ snapshot: CampaignSnapshot) async throws {
        let now = try await time.now().moment
        let marks = try await store.scheduleMarks()
        ServiceMetrics.start(campaigns: snapshot.campaigns.map(\.campaign.name))
        let new = tracker.adopt(snapshot, marks: marks, now: now)
        guard tracker.isCoordinator || !store.isShared else { return }
        try await store.setScheduleMarks(new)
        try await store.removeScheduleMarks(of: marks.keys.filter { tracker.isGone($0, onShared: store.isShared) })
        ServiceMetrics.reloaded(isGood: snapshot.problems.isEmpty, at: now)
        if !snapshot.hashes.isEmpty {
            try await store.recordEvent(
                kind: .filesRead, run: nil, actor: actor, detail: snapshot.summary, files: snapshot.hashes, now: now)
        }
        tracker.changed.raise()
    }

    private func lookForRuns(_ launches: AsyncStream<Run>.Continuation) async throws {
        var watch = ClockWatch(store: store, clock: clock, actor: actor, logger: logger)
        var unreadable = UnreadableRunsWatch(store: store, logger: logger)
        try await supervisor.keep(.runs) {
            while !Task.isCancelled {
                if await watch.look() { tracker.changed.raise() }
                try await unreadable.look(at: clock.uptime())
                // Read this before the store. A run that is released in between is then found by the next check.
                let inHand = Set(tracker.status.running)
                let stops = try await senders.stopsInForce()
                let open = try await store.openRuns(for: actor.name, inHand: inHand)
                for run in open where isToBeTaken(run, stops) {
                    if senders.isReloaded(since: run.id) { tracker.endRest(of: run.id) }
                    launch(run, launches)
                }
                await clock.sleep(intervals.lookEvery)
            }
        }
    }

    func isToBeTaken(_ run: Run, _ stops: StopOrders) -> Bool {
        stops.order(of: run) == nil && (HaltRetry.isDue(run, at: clock.now()) || senders.isReloaded(since: run.id))
    }

    private func heartbeat() async throws {
        var rate = AnswerRate(at: clock.uptime())
        var files = FilesComparison()
        var pace = HeartbeatPace()
        // The watchdog must detect only a daemon that hangs, not a daemon whose store accepts nothing.
        try await supervisor.keep(
            .heartbeat, pauseMax: intervals.heartbeatEvery, failed: { tracker.wrote(fault: "\($0)") }
        ) {
            while !Task.isCancelled {
                tracker.looped(at: clock.uptime())
                try senders.requireIntact()
                try store.requireInPlace()
                var isOurs = true
                let began = clock.uptime()
                tracker.writes(at: began)
                if store.isShared {
                    try await store.beat(actor.name, facts(rate.next(at: began), pace))
                    judge(&pace, beatOf: clock.uptime() - began)
                }
                if tracker.isCoordinator {
                    isOurs = try await store.daemonHeartbeat(owner: actor.name, tracker.status, now: clock.now())
                    try await files.look(store, at: clock.uptime(), logger)
                }
                tracker.wrote(fault: nil)
                if !isOurs { throw SenderError.otherDaemon("another process") }
                tracker.looped(at: clock.uptime())
                let now = clock.uptime()
                await clock.sleep(
                    store.isShared ? SenderTrust.pause(since: began, now: now) : intervals.heartbeatEvery)
            }
        }
    }

    /// Logs that heartbeats have become too slow to send, or fast enough again.
    private func judge(_ pace: inout HeartbeatPace, beatOf duration: Duration) {
        guard pace.note(duration, at: clock.uptime()), let isTooSlow = pace.isTooSlow else { return }
        ServiceMetrics.isTooSlow(isTooSlow)
        guard isTooSlow else { return logger.notice("the database server responds to heartbeats in time again") }
        logger.warning(
            "the database server responds too slowly for this machine to send",
            metadata: .facts([
                .reason: "a heartbeat takes \(duration.wholeMilliseconds) ms; check the network to the server"
            ]))
    }

    private func facts(_ rate: Double, _ pace: HeartbeatPace) -> SenderFacts {
        var facts = SenderFacts()
        facts.isTooSlow = pace.isTooSlow == true
        facts.rate = rate
        facts.command = "fanfare serve"
        facts.isDaemon = true
        facts.lanes = senders.lanes
        facts.runs = tracker.status.running
        facts.files = tracker.snapshot?.filesHash
        return facts
    }

    func launch(_ run: Run, _ launches: AsyncStream<Run>.Continuation) {
        if tracker.claim(run.id, now: clock.uptime()) { launches.yield(run) }
    }

    private func execute(_ runs: AsyncStream<Run>) async {
        await withDiscardingTaskGroup { group in
            for await run in runs {
                group.addTask {
                    let isToRest = await execute(run)
                    tracker.release(run.id, restingFrom: isToRest ? clock.uptime() : nil, first: intervals.holdOff)
                }
            }
        }
    }

    /// Executes a run. Returns whether this process backs off from the run for a while.
    private func execute(_ run: Run) async -> Bool {
        do {
            switch try await carryOut(run, idleLimit: nil) {
            // If there is no idle limit, a run waits only because its audience could not be frozen yet.
            case .busy, .waiting: return true
            // The fault is this machine's. On a shared store, other machines continue the run. Otherwise HaltRetry
            // decides.
            case .unreachable, .credentialRefused: return store.isShared
            default: return false
            }
        } catch is CancellationError {
            return false
        } catch StoreError.runIsOver {
            // The run ended after it was found among the open runs.
            return false
        } catch {
            RunLines(run, clock: clock, logger: logger).failed(error)
            return true
        }
    }

    /// Sends a run that was not started by hand. If its audience cannot be counted, the run ends as failed, like a
    /// refused occurrence: otherwise, no person would hear of it.
    func carryOut(_ run: Run, idleLimit: Duration?) async throws -> RunEnd {
        let lines = RunLines(run, clock: clock, logger: logger)
        do {
            let end = try await senders.execute(run, idleLimit: idleLimit) { control, _ in lines.began(control) }
            lines.ended(end)
            return end
        } catch let error as StoreError where error.isAboutAudience {
            try await store.release(run.id, by: actor, state: .failed, reason: "\(error)", now: clock.now())
            lines.ended(.failed("\(error)"))
            return .failed("\(error)")
        }
    }

    func log(_ entry: (due: Agenda.Due, made: DueRuns.Made)) {
        var metadata: Logger.Metadata = .facts([
            .campaign: "\(entry.due.campaign.campaign.name)", .occurrence: "\(entry.due.occurrence.key)",
        ])
        switch entry.made {
        case .run(let run):
            metadata[.run] = "\(run.id)"
            ServiceMetrics.started(late: clock.now() - entry.due.occurrence.startsAt)
            logger.notice("run due", metadata: metadata)
        case .ended(let run):
            metadata[.run] = "\(run.id)"
            metadata[.reason] = "\(run.stateReason ?? "")"
            logger.warning("run \(run.state.rawValue)", metadata: metadata)
        case .waits(let reason):
            metadata[.reason] = "\(reason)"
            logger.warning("occurrence awaits approval", metadata: metadata)
        case .delayed(let delay):
            metadata[.reason] = "\(delay.reason)"
            logger.error("occurrence not started; retrying", metadata: metadata)
        }
    }
}
