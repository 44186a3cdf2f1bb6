package import Logging
package import Model
package import Storage
package import WebClient

/// Obeys the schedules of the campaigns, and carries out whatever run is open and in nobody's hands: created by hand, by
/// a timer or by itself, or left behind by a process that has ended.
///
///     campaign files -> agenda -> due runs -.
///                    runs made elsewhere ---+-> lanes of their app -> outcomes
///
/// Runs are handed over through the store: there is no other channel. Time is a parameter.
package struct Daemon: Sendable {
    /// What the campaign files say now.
    package struct Supply: Sendable {
        package var campaigns: [ReadyCampaign]
        /// Under which campaigns stand in the folder, right or wrong: what a broken file holds is not forgotten.
        package var names: Set<String>
        package var problems: [DaemonStatus.Problem]
        /// SHA-256 in hex of the files that were read again, by path: for the record.
        package var hashes: [String: String]

        package init(
            campaigns: [ReadyCampaign], names: Set<String>, problems: [DaemonStatus.Problem] = [],
            hashes: [String: String] = [:]
        ) {
            self.campaigns = campaigns
            self.names = names
            self.problems = problems
            self.hashes = hashes
        }
    }

    /// How often it looks around.
    package struct Rhythm: Sendable {
        /// For runs that others made.
        package var lookEvery: Duration = .milliseconds(500)
        package var heartbeatEvery: Duration = .seconds(3)
        /// At most this long without a look at the wall clock, which may be set.
        package var sleepMax: Duration = .seconds(20)
        /// After a run that could not be carried out, before it is tried again.
        package var holdOff: Duration = .seconds(30)
        package init() {}
    }

    /// Without a sign of life for this long a daemon counts as gone.
    package static let staleAfter: Duration = .seconds(15)
    /// A store that keeps others waiting may take some of it.
    private static let hungAfter: Duration = .seconds(60)

    let store: Store
    let fleet: Fleet
    let owner: String
    let clock: EngineClock
    let rhythm: Rhythm
    let logger: Logger
    let board = DaemonBoard()
    private let feeds: FeedWatch
    private let nights: NightWork

    /// - Parameters:
    ///   - web: asks the feeds.
    ///   - retention: for how long outcomes by device are kept, asked every night.
    package init(
        store: Store, fleet: Fleet, owner: String, clock: EngineClock, rhythm: Rhythm = Rhythm(), web: HTTPClient,
        retention: @escaping @Sendable () -> Duration, logger: Logger
    ) {
        self.store = store
        self.fleet = fleet
        self.owner = owner
        self.clock = clock
        self.rhythm = rhythm
        self.logger = logger
        feeds = FeedWatch(
            poller: FeedPoller(store: store, web: web, actor: owner), board: board, clock: clock,
            sleepMax: rhythm.sleepMax, logger: logger)
        nights = NightWork(
            store: store, actor: owner, retention: retention, clock: clock, sleepMax: rhythm.sleepMax, logger: logger)
    }

    /// How it is now.
    package var status: DaemonStatus { board.status }

    /// False when it has not turned for so long that something in it must hang.
    package var isAlive: Bool { board.turnedAt.map { clock.now() - $0 < Self.hungAfter } ?? true }

    /// Works until cancelled; then runs are stopped in good order, and go on with the next start.
    ///
    /// ``EngineError/otherDaemon(_:)`` when another one is alive on the same store.
    package func run(_ supplies: AsyncStream<Supply>) async throws {
        if let other = try await store.takeDaemonPost(owner: owner, now: clock.now(), staleAfter: Self.staleAfter) {
            throw EngineError.otherDaemon(other.owner)
        }
        let (runs, launches) = AsyncStream.makeStream(of: Run.self)
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await fleet.work() }
                group.addTask { for await supply in supplies { try await takeInTheEnd(supply) } }
                group.addTask { try await startDue(launches) }
                group.addTask { try await lookForRuns(launches) }
                group.addTask { await feeds.run() }
                group.addTask { await nights.run() }
                group.addTask { try await heartbeat() }
                group.addTask { await carryOut(runs) }
                defer { launches.finish() }
                try await group.waitForAll()
            }
        } catch is CancellationError {}
        fleet.close()
        try await store.leaveDaemonPost(owner: owner)
        logger.info("stopped")
    }

    /// Does what the daemon would do now, and returns when nothing more is due within `patience`.
    package func once(_ supply: Supply, patience: Duration) async throws -> [(run: Run, end: RunEnd)] {
        try await take(supply)
        let now = clock.now()
        let due = board.due(at: now)
        for entry in try await DueRuns(store: store, actor: owner).make(due, now: now) { log(entry) }
        try await store.advanceScheduleMarks(of: board.names, to: now)
        try await feeds.pollDue()
        let open = try await store.openRuns(now: now, staleAfter: Heartbeat.staleAfter, except: owner)
        return try await withThrowingTaskGroup(of: (Run, RunEnd)?.self) { group in
            group.addTask {
                await fleet.work()
                return nil
            }
            for run in open { group.addTask { (run, try await carryOutOrFail(run, patience: patience)) } }
            var ends: [(run: Run, end: RunEnd)] = []
            while ends.count < open.count, let answer = try await group.next() {
                if let (run, end) = answer { ends.append((run, end)) }
            }
            fleet.close()
            try await group.waitForAll()
            return ends.sorted { $0.run.id < $1.run.id }
        }
    }
}

extension Daemon {
    private func takeInTheEnd(_ supply: Supply) async throws {
        while !Task.isCancelled {
            do {
                try await take(supply)
                // Whoever has just changed a file looks what became of it.
                _ = try await store.daemonHeartbeat(owner: owner, board.status, now: clock.now())
                return
            } catch let error as StoreError {
                logger.error("files not taken over; trying again", metadata: ["error": "\(error)"])
                await clock.sleep(.seconds(1))
            }
        }
    }

    private func take(_ supply: Supply) async throws {
        let now = clock.now()
        let marks = try await store.scheduleMarks()
        let new = board.take(supply, marks: marks, now: now)
        try await store.setScheduleMarks(new)
        try await store.removeScheduleMarks(of: marks.keys.filter { !supply.names.contains($0) })
        ServiceMetrics.reloaded(isGood: supply.problems.isEmpty, at: now)
        if !supply.hashes.isEmpty {
            try await store.recordEvent(
                kind: "files_read", run: nil, actor: owner, detail: supply.summary, files: supply.hashes, now: now)
        }
        board.changed.raise()
    }

    private func startDue(_ launches: AsyncStream<Run>.Continuation) async throws {
        let dueRuns = DueRuns(store: store, actor: owner)
        var backlog: [Agenda.Due] = []
        while !Task.isCancelled {
            let seen = board.changed.version
            let now = clock.now()
            backlog += board.due(at: now)
            if !backlog.isEmpty {
                do {
                    for entry in try await dueRuns.make(backlog, now: now) {
                        log(entry)
                        if case .run(let run) = entry.made { launch(run, launches) }
                    }
                    backlog = []
                } catch let error as StoreError {
                    logger.error("due runs not made; trying again", metadata: ["error": "\(error)"])
                    await clock.sleep(.seconds(1))
                    continue
                }
            }
            let wait = board.nextStart.map { min($0 - clock.now(), rhythm.sleepMax) } ?? rhythm.sleepMax
            if wait > .zero { await board.changed.wait(after: seen, atMost: wait, clock: clock) }
        }
    }

    private func lookForRuns(_ launches: AsyncStream<Run>.Continuation) async throws {
        while !Task.isCancelled {
            do {
                let open = try await store.openRuns(
                    now: clock.now(), staleAfter: Heartbeat.staleAfter, except: owner)
                for run in open { launch(run, launches) }
            } catch let error as StoreError {
                logger.error("cannot look for runs", metadata: ["error": "\(error)"])
            }
            await clock.sleep(rhythm.lookEvery)
        }
    }

    private func heartbeat() async throws {
        while !Task.isCancelled {
            let isOurs: Bool
            do {
                isOurs = try await store.daemonHeartbeat(owner: owner, board.status, now: clock.now())
            } catch let error as StoreError {
                logger.error("no sign of life written", metadata: ["error": "\(error)"])
                isOurs = true
            }
            if !isOurs { throw EngineError.otherDaemon("another process") }
            board.turned(at: clock.now())
            await clock.sleep(rhythm.heartbeatEvery)
        }
    }

    private func launch(_ run: Run, _ launches: AsyncStream<Run>.Continuation) {
        if board.take(run.id, now: clock.now()) { launches.yield(run) }
    }

    private func carryOut(_ runs: AsyncStream<Run>) async {
        await withDiscardingTaskGroup { group in
            for await run in runs {
                group.addTask {
                    var holdOff: Duration?
                    do {
                        let end = try await carryOutOrFail(run, patience: nil)
                        logger.info("run ended", metadata: ["run": "\(run.id)", "end": "\(end)"])
                        if case .busy = end { holdOff = rhythm.holdOff }
                    } catch is CancellationError {
                    } catch StoreError.runIsOver {
                        // It ended between the look for open runs and now.
                    } catch {
                        holdOff = rhythm.holdOff
                        logger.error("run not carried out", metadata: ["run": "\(run.id)", "error": "\(error)"])
                    }
                    board.release(run.id, until: holdOff.map { clock.now() + $0 })
                }
            }
        }
    }

    /// A run that can never be sent as things are is failed, so that nobody sends it hours late.
    private func carryOutOrFail(_ run: Run, patience: Duration?) async throws -> RunEnd {
        do {
            return try await fleet.carryOut(run, patience: patience)
        } catch let error where !(error is StoreError || error is CancellationError || error is EngineError) {
            try await store.change(run.id, to: .failed, reason: "\(error)", now: clock.now(), by: owner)
            throw error
        }
    }

    private func log(_ entry: (due: Agenda.Due, made: DueRuns.Made)) {
        var metadata: Logger.Metadata = [
            "campaign": "\(entry.due.campaign.campaign.name)", "occurrence": "\(entry.due.occurrence.key)",
        ]
        switch entry.made {
        case .run(let run):
            metadata["run"] = "\(run.id)"
            ServiceMetrics.started(late: clock.now() - entry.due.occurrence.startsAt)
            logger.notice("run due", metadata: metadata)
        case .ended(let state, let reason):
            metadata["reason"] = "\(reason)"
            logger.warning("run \(state.rawValue)", metadata: metadata)
        }
    }
}

extension Daemon.Supply {
    fileprivate var summary: String {
        var words = "\(hashes.count) changed, \(campaigns.count) campaigns"
        if !problems.isEmpty { words += "; not taken over: " + problems.map(\.path).joined(separator: ", ") }
        return words
    }
}
