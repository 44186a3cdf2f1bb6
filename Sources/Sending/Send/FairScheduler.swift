import Model
import Store
import Synchronization

/// Hands the lanes of one environment the leases of all runs that share them.
///
/// Each run gets lanes by its priority's weight, counted in pushes: 10 before 5 before 1, and nobody starves. A run that
/// comes later, or had nothing to send for a while, does not make up for it.
final class FairScheduler: Sendable {
    /// A lease, and the run it belongs to.
    struct Load: Sendable {
        var lease: Lease
        var work: RunInProgress
    }

    private struct Member {
        var desk: LeaseSource
        var work: RunInProgress
        var weight: Double
        /// Pushes taken, by weight: who has the least is next.
        var taken: Double
        var rest: (seen: UInt64, until: Timestamp?)?

        func isResting(at now: Timestamp) -> Bool {
            guard let rest, rest.seen == work.control.changed.version else { return false }
            return rest.until.map { now < $0 } ?? true
        }
    }

    private struct State {
        var members: [Int64: Member] = [:]
        /// What the run served last had taken before: the start of whoever comes now.
        var floor = 0.0
        var isClosed = false
    }

    private enum Answer {
        case load(Load)
        case nothing(until: Timestamp?)
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

    func join(_ work: RunInProgress, _ desk: LeaseSource) {
        let weight = work.run.definition.campaign.priority.laneWeight
        state.withLock { state in
            state.members[work.run.id] = Member(desk: desk, work: work, weight: weight, taken: state.floor)
        }
        changed.raise()
    }

    func leave(_ work: RunInProgress) {
        state.withLock { _ = $0.members.removeValue(forKey: work.run.id) }
        changed.raise()
    }

    /// No more leases for anybody.
    func close() {
        state.withLock { $0.isClosed = true }
        changed.raise()
    }

    /// Hears what the responses say about the endpoint; stops all of its runs when it is down for good.
    func saw(_ signs: some Sequence<CircuitBreaker.Sign>) {
        if let reason = breaker.saw(signs, at: clock.now()) { stopAll(reason) }
    }

    /// Stops all runs of the environment: their lanes cannot work.
    func stopAll(_ reason: RunControl.Halt) {
        for member in state.withLock({ Array($0.members.values) }) { member.work.control.stop(reason) }
    }

    /// The next lease; waits for one, at most so long. Nil: there is none, or the desk is closed.
    ///
    /// - Parameter most: deliveries that whoever asks has room for.
    func next(atMost most: Int, waitingAtMost limit: Duration?) async -> Load? {
        let end = limit.map { clock.now() + $0 }
        while !Task.isCancelled, !state.withLock({ $0.isClosed }) {
            let seen = changed.version
            switch await gate.pass({ await ask(atMost: most) }) {
            case .load(let load): return load
            case .nothing(let due):
                let now = clock.now()
                if let end, now >= end { return nil }
                guard let wake = [due, end].compactMap(\.self).min() else {
                    await changed.wait(after: seen)
                    continue
                }
                if wake > now { await changed.wait(after: seen, atMost: wake - now, clock: clock) }
            }
        }
        return nil
    }

    private func ask(atMost most: Int) async -> Answer {
        let now = clock.now()
        let (ready, resting) = state.withLock { state in
            let members = state.members.values.sorted { $0.taken < $1.taken }
            return (members.filter { !$0.isResting(at: now) }, members.filter { $0.isResting(at: now) })
        }
        var due = resting.compactMap { $0.rest?.until }.min()
        for member in ready {
            switch await member.desk.ask(atMost: most) {
            case .lease(let lease):
                charge(member, lease.deliveries.count)
                return .load(Load(lease: lease, work: member.work))
            case .rest(let seen, let until):
                state.withLock { $0.members[member.work.run.id]?.rest = (seen, until) }
                due = [due, until].compactMap(\.self).min()
            case .over:
                state.withLock { _ = $0.members.removeValue(forKey: member.work.run.id) }
            }
        }
        return .nothing(until: due)
    }

    private func charge(_ member: Member, _ count: Int) {
        state.withLock { state in
            let start = max(member.taken, state.floor)
            state.floor = start
            state.members[member.work.run.id]?.taken = start + Double(count) / member.weight
            state.members[member.work.run.id]?.rest = nil
        }
    }
}

extension PushPriority {
    /// Its share of the lanes beside the others.
    fileprivate var laneWeight: Double {
        switch self {
        case .immediate: 16
        case .considerate: 4
        case .lowest: 1
        }
    }
}
