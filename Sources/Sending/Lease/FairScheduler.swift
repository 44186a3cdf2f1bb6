import APNs
import Model
import Platform
import Store
import Synchronization

/// Hands the lanes of one environment the leases of all runs that share them: weighted fair queueing.
///
/// Each run gets a share by its priority's weight, counted in pushes: 16 for priority 10, 4 for 5, and 1 for 1. No run
/// starves. A run that joins late, or had nothing to send for a while, gets no extra share for that time.
final class FairScheduler: Sendable {
    /// A lease and its run.
    struct RunLease: Sendable {
        var lease: Lease
        var run: RunInProgress
    }

    private struct Member {
        var source: LeaseSource
        var run: RunInProgress
        var weight: Double
        /// The number of pushes leased, divided by the weight. The run with the lowest number is next.
        var taken: Double
        /// Set while the run has nothing to lease. `seen` is the version of its signal before the check, and `until` is
        /// by ``WallClock/uptime``.
        var idle: (seen: UInt64, until: Duration?)?

        func isIdle(at now: Duration) -> Bool {
            guard let idle, idle.seen == run.control.progress.changed.version else { return false }
            return idle.until.map { now < $0 } ?? true
        }
    }

    private struct State {
        var members: [Int64: Member] = [:]
        /// The value of `taken` that the last served run had before its lease. A joining run starts with it, and no run
        /// is served below it, so that idle time earns no extra share.
        var floor = 0.0
        /// The lanes that are open and have had responses.
        var working: Set<String> = []
        /// The open lanes, by name.
        var open: [String: any Lane] = [:]
        var reach = EndpointReach()
        var isClosed = false
    }

    let changed: Signal
    /// Raised when one of the runs is to stop.
    let stopped: Signal
    let environment: PushEnvironment
    let breaker: EndpointBreaker
    private let clock: WallClock
    private let gate = AsyncGate()
    private let state = Mutex(State())

    /// - Parameter changed: raised when one of the runs may have more to lease.
    init(
        _ environment: PushEnvironment, breaker: EndpointBreaker, clock: WallClock, changed: Signal, stopped: Signal
    ) {
        self.environment = environment
        self.breaker = breaker
        self.clock = clock
        self.changed = changed
        self.stopped = stopped
    }

    func join(_ run: RunInProgress, _ source: LeaseSource) {
        let weight = run.campaign.priority.laneWeight
        state.withLock { state in
            state.members[run.id] = Member(source: source, run: run, weight: weight, taken: state.floor)
        }
        changed.raise()
    }

    /// Whether the run may get another lease.
    func has(_ run: Int64) -> Bool { state.withLock { $0.members[run] != nil } }

    func remove(_ run: RunInProgress) {
        state.withLock { _ = $0.members.removeValue(forKey: run.id) }
        changed.raise()
    }

    /// Ends leasing for all runs and lanes.
    func close() {
        state.withLock { $0.isClosed = true }
        changed.raise()
    }

    /// Records observations, and stops all runs of the environment if the endpoint counts as down.
    func observe(_ observations: some Sequence<CircuitBreaker.Observation>) {
        let (reason, isFreed) = breaker.observe(observations, at: clock.reading())
        if let reason { stopAll(reason) }
        // Wake runs that checked before these responses were observed: the time they wait for may no longer apply.
        if isFreed { runs.forEach { $0.control.progress.changed.raise() } }
    }

    private var runs: [RunInProgress] { state.withLock { $0.members.values.map(\.run) } }

    /// Lets only one request start, see ``CircuitBreaker/probeFirst(at:)``.
    func probeFirst() { breaker.probeFirst(at: clock.reading()) }

    /// The pause that holds back all runs of the environment. For an outage, the time of the next try is in the past,
    /// because the lanes keep retrying.
    var hold: EndpointHold? {
        if let hold = breaker.hold(at: clock.reading()) {
            return EndpointHold(
                environment: environment, endpoint: breaker.endpoint, status: hold.status, since: hold.since,
                nextTryAt: hold.nextTryAt)
        }
        return outage.map {
            EndpointHold(
                environment: environment, endpoint: $0.endpoint, status: nil, since: $0.since, nextTryAt: $0.since)
        }
    }

    /// The outage, while the endpoint gives no responses.
    var outage: EndpointOutage? {
        let uptime = clock.uptime()
        return state.withLock { $0.reach.outage(at: uptime) }.map {
            EndpointOutage(environment: environment, endpoint: breaker.endpoint, since: $0)
        }
    }

    /// Checks whether the endpoint responds. Returns the change to report. Each change is returned once.
    func look() -> EndpointReach.Change? {
        let lanes = state.withLock { Array($0.open.values) }
        let isWaiting = lanes.contains { lane in
            let status = lane.status
            return status.connectFailures > 0 || status.inFlight > 0 || (status.connects == 0 && status.queued > 0)
        }
        let now = clock.reading()
        return state.withLock { $0.reach.look(isWaiting: isWaiting, at: now) }
    }

    /// Returns an unreported ``EndpointReach/Change/found`` at the end of a run, because no check follows.
    func takeFound() -> EndpointReach.Change? { state.withLock { $0.reach.takeFound() } }

    /// Takes over a pause that the last sender of a run recorded, if it is about this endpoint as configured now.
    func takeOver(_ hold: EndpointHold) {
        guard hold.environment == environment, hold.endpoint == breaker.endpoint else { return }
        breaker.takeOver(
            .init(since: hold.since, status: hold.status, nextTryAt: hold.nextTryAt), at: clock.reading())
    }

    /// Stops all runs of the environment.
    func stopAll(_ reason: StopReason) {
        for run in runs { run.control.stop(reason) }
    }

    func opened(_ name: String, _ lane: any Lane) {
        state.withLock { $0.open[name] = lane }
    }

    /// Records that the lane had a response.
    func works(_ lane: String) {
        let now = clock.uptime()
        state.withLock { state in
            state.working.insert(lane)
            state.reach.heard(at: now)
        }
    }

    func ended(_ lane: String) {
        state.withLock { state in
            state.working.remove(lane)
            state.open.removeValue(forKey: lane)
        }
    }

    func othersWork(than lane: String) -> Bool {
        state.withLock { !$0.working.subtracting([lane]).isEmpty }
    }

    /// Waits for this time, or until the scheduler is closed or the task is cancelled.
    func rest(_ time: Duration) async {
        let end = clock.uptime() + time
        while !Task.isCancelled, !state.withLock({ $0.isClosed }) {
            let seen = changed.version
            let now = clock.uptime()
            if now >= end { return }
            await changed.wait(after: seen, atMost: end - now, clock: clock)
        }
    }

    /// Stops all runs in this environment, because its credential is unusable.
    func refuseAll(_ reason: String) {
        for run in runs { run.control.refuse(environment, reason) }
    }

    /// Returns the next lease, and waits for one for at most `limit`. Returns `nil` if none came in time or the
    /// scheduler is closed.
    ///
    /// - Parameter most: the number of deliveries for which the caller has room.
    func next(atMost most: Int, waitingAtMost limit: Duration?) async -> RunLease? {
        let end = limit.map { clock.uptime() + $0 }
        while !Task.isCancelled, !state.withLock({ $0.isClosed }) {
            let seen = changed.version
            let (lease, due) = await gate.pass { await ask(atMost: most) }
            if let lease { return lease }
            let now = clock.uptime()
            if let end, now >= end { return nil }
            guard let wake = [due, end].compactMap(\.self).min() else {
                await changed.wait(after: seen)
                continue
            }
            if wake > now { await changed.wait(after: seen, atMost: wake - now, clock: clock) }
        }
        return nil
    }

    /// Tries to lease from the runs, the one with the smallest share first. If there is no lease, returns when one of
    /// them has something due.
    private func ask(atMost most: Int) async -> (RunLease?, due: Duration?) {
        let now = clock.uptime()
        let (ready, idle) = state.withLock { state in
            let members = state.members.values.sorted { $0.taken < $1.taken }
            return (members.filter { !$0.isIdle(at: now) }, members.filter { $0.isIdle(at: now) })
        }
        var due = idle.compactMap { $0.idle?.until }.min()
        for member in ready {
            switch await member.source.next(atMost: most) {
            case .lease(let lease):
                charge(member, lease.deliveries.count)
                return (RunLease(lease: lease, run: member.run), nil)
            case .nothing(let seen, let moment):
                // Convert the moment to uptime. If the wall clock is set, the heartbeat raises the run's signal, and
                // the run is checked again.
                let clocks = clock.reading()
                let until = moment.map { clocks.uptime + ($0 - clocks.wall) }
                state.withLock { $0.members[member.run.id]?.idle = (seen, until) }
                due = [due, until].compactMap(\.self).min()
            case .yields(let looked):
                // Rows that were read count like pushes, so that a run with many deferred deliveries uses only its
                // share of the store.
                charge(member, looked)
                due = now
            case .exhausted:
                state.withLock { _ = $0.members.removeValue(forKey: member.run.id) }
            }
        }
        return (nil, due)
    }

    private func charge(_ member: Member, _ count: Int) {
        state.withLock { state in
            let start = max(member.taken, state.floor)
            state.floor = start
            state.members[member.run.id]?.taken = start + Double(count) / member.weight
            state.members[member.run.id]?.idle = nil
        }
    }
}

extension PushPriority {
    /// The weight of the run's share of the lanes.
    fileprivate var laneWeight: Double {
        switch self {
        case .immediate: 16
        case .considerate: 4
        case .lowest: 1
        }
    }
}
