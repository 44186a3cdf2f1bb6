package import Logging
package import Model
package import Store
package import WebClient
package import Campaigns
package import Sending
import Synchronization

/// Obeys the schedules of the campaigns, and carries out every open run without a living owner: created by hand, by
/// a timer or by itself, or left behind by a process that has ended.
///
///     campaign files -> agenda -> due runs -.
///                    runs made elsewhere ---+-> lanes of their app -> outcomes
///
/// Runs are handed over through the store: there is no other channel. Time is a parameter.
package struct Scheduler: Sendable {
    /// What the campaign files say now.
    package struct CampaignSnapshot: Sendable {
        package var campaigns: [ReadyCampaign]
        /// Under which campaigns stand in the folder, right or wrong: what a broken file holds is not forgotten.
        package var names: Set<String>
        package var problems: [DaemonStatus.Problem]
        /// SHA-256 in hex of the files that were read again, by path: for the record.
        package var hashes: [String: String]
        /// Of all campaigns and templates, to tell them from those of other machines.
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

    /// How often it looks around.
    package struct DaemonIntervals: Sendable {
        /// For runs that others made.
        package var lookEvery: Duration = .milliseconds(500)
        package var heartbeatEvery: Duration = .seconds(3)
        /// At most this long without a look at the wall clock, which may be set.
        package var sleepMax: Duration = .seconds(20)
        /// After a run that could not be carried out, before it is tried again.
        package var holdOff: Duration = .seconds(30)
        /// See ``DueRuns/countLimit``.
        package var countLimit = DueRuns.countLimit
        package init() {}
    }

    /// Between two tries to become the coordinator.
    private static let postInterval: Duration = .seconds(1)
    private static let recoverInterval: Duration = .seconds(5)
    /// Between two looks whether what waits for approval has it.
    static let approvalInterval: Duration = .seconds(2)
    /// Above the store's busy time: a slow store is no hang.
    private static let hungAfter: Duration = .seconds(60)

    let store: any AllRoles
    let senders: SenderRegistry
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

    /// - Parameters:
    ///   - web: asks the feeds.
    ///   - retention: for how long outcomes by device are kept, asked every night.
    ///   - approvals: whose approval a run needs, asked for each.
    ///   - brake: what is so much that it waits for a person, asked for each.
    ///   - supervisor: keeps the daemon's parts at work. `nil`: one of its own.
    package init(
        store: any AllRoles, senders: SenderRegistry, actor: Actor, clock: WallClock,
        intervals: DaemonIntervals = DaemonIntervals(), web: HTTPClient,
        retention: @escaping @Sendable () -> Duration,
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
    }

    /// How it is now.
    package var status: DaemonStatus { tracker.status }

    /// Of all daemons of the store it starts what is due.
    package var isCoordinator: Bool { tracker.isCoordinator }
    package var stopsInForce: StopOrders { senders.knownStops }

    /// False when it has not turned for so long that something in it must hang.
    package var isAlive: Bool { tracker.loopedAt.map { clock.uptime() - $0 < Self.hungAfter } ?? true }

    /// Why it can do nothing for anybody now: the store takes nothing, as its last sign of life has shown. Nil: it can.
    package var unready: String? { tracker.unwritable(at: clock.uptime()) }

    /// Endpoints that give this process no responses. People can still be served, and stop what goes wrong.
    package var outages: [EndpointOutage] { senders.outages }

    /// Works until cancelled; then runs are stopped in good order, and go on with the next start. Once it has begun, it
    /// throws only a ``DaemonEnd``.
    ///
    /// Of several daemons on a store that machines share one is the coordinator; the others send, and wait for its post.
    /// Elsewhere ``SendingError/otherDaemon(_:)`` when another one is alive.
    package func run(_ snapshots: AsyncStream<CampaignSnapshot>) async throws {
        if let other = try await store.becomeDaemon(owner: actor.name, now: clock.now()) {
            guard store.isShared else { throw SendingError.otherDaemon(ProcessName.shown(other.owner)) }
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
                if store.isShared { group.addTask { try await recoverLost() } }
                group.addTask { try await heartbeat() }
                group.addTask { await execute(runs) }
                defer { launches.finish() }
                // Whatever a part throws ends them all, see DaemonEnd.
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
            try await take(snapshot)
            // Whoever has just changed a file looks what became of it.
            if tracker.isCoordinator {
                _ = try await store.daemonHeartbeat(owner: actor.name, tracker.status, now: clock.now())
            }
        }
    }

    /// A store that takes nothing now is no reason to exit with an error: the row of a process that has exited binds no
    /// other daemon. A server that refuses the password is one: the next start would fail as well.
    private func resign() async throws {
        do {
            try await store.resignDaemon(owner: actor.name)
        } catch {
            if case StoreError.accessRefused = error { throw error }
            logger.error(
                "the daemon's row was not removed; the next daemon replaces it",
                metadata: .facts([.error: "\(error)"]))
        }
    }

    /// What one daemon does for all: it starts what is due, polls feeds and tidies up.
    private func coordinate(_ launches: AsyncStream<Run>.Continuation) async throws {
        try await supervisor.keep(.coordinator) {
            while !tracker.isCoordinator {
                await clock.sleep(Self.postInterval)
                guard !Task.isCancelled else { return }
                guard try await store.becomeDaemon(owner: actor.name, now: clock.now()) == nil else { continue }
                tracker.becameCoordinator()
                if let snapshot = tracker.snapshot { try await apply(snapshot) }
                logger.notice("coordinates from now on")
            }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await startDue(launches) }
            group.addTask { try await feeds.run(supervisor) }
            group.addTask { try await supervisor.keep(.maintenance) { await maintenance.run() } }
            while try await group.next() != nil {}
        }
    }

    /// What senders left that are gone, of runs that nobody takes up: paused ones, and such as were cancelled.
    private func recoverLost() async throws {
        try await supervisor.keep(.recovery) {
            while !Task.isCancelled {
                await clock.sleep(Self.recoverInterval)
                guard !Task.isCancelled else { return }
                for found in try await senders.recoverAbandoned() {
                    logger.warning(
                        "put in order",
                        metadata: .facts([.run: "\(found.run)", .reason: "\(found.recovered.words)"]))
                }
            }
        }
    }

    func take(_ snapshot: CampaignSnapshot) async throws {
        let now = try await time.now().moment
        let marks = try await store.scheduleMarks()
        ServiceMetrics.start(campaigns: snapshot.campaigns.map(\.campaign.name))
        let new = tracker.take(snapshot, marks: marks, now: now)
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
                // Asked before the store: a run that is let go of meanwhile is found the next time.
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
        // The watchdog hears of a daemon that hangs, not of one whose store takes nothing.
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
                if !isOurs { throw SendingError.otherDaemon("another process") }
                tracker.looped(at: clock.uptime())
                let now = clock.uptime()
                await clock.sleep(
                    store.isShared ? SenderTrust.pause(since: began, now: now) : intervals.heartbeatEvery)
            }
        }
    }

    /// Tells that heartbeats take too long to send, and that they do no more.
    private func judge(_ pace: inout HeartbeatPace, beatOf duration: Duration) {
        guard pace.note(duration, at: clock.uptime()), let isTooSlow = pace.isTooSlow else { return }
        ServiceMetrics.isTooSlow(isTooSlow)
        guard isTooSlow else { return logger.notice("the database server answers heartbeats in time again") }
        logger.warning(
            "the database server answers too slowly for this machine to send",
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
        if tracker.take(run.id, now: clock.uptime()) { launches.yield(run) }
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

    /// Returns whether this process is to leave the run alone for a while.
    private func execute(_ run: Run) async -> Bool {
        do {
            switch try await carryOut(run, idleLimit: nil) {
            // Without an idle limit a run waits only if its audience could not be written down yet.
            case .busy, .waiting: return true
            // This machine's own fault, while others go on with the run. Otherwise HaltRetry decides.
            case .unreachable, .credentialRefused: return store.isShared
            default: return false
            }
        } catch is CancellationError {
            return false
        } catch StoreError.runIsOver {
            // It ended between the look for open runs and now.
            return false
        } catch {
            RunLines(run, clock: clock, logger: logger).failed(error)
            return true
        }
    }

    /// Sends a run that nobody started by hand. One whose audience cannot be counted ends as failed, like an occurrence
    /// that is refused: nobody would hear of it otherwise.
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
            logger.error("occurrence not started; trying again", metadata: metadata)
        }
    }
}
