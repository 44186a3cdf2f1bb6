import APNs
package import Model
import Synchronization

/// What all lanes share of a run: the account, what is in their hands, and the decision to go on or to stop.
package final class RunControl: Sendable {
    /// Why a run stops before its end.
    package enum Halt: Hashable, Sendable {
        /// Asked to: the same command goes on later.
        case stopRequested
        /// Nothing is due before this moment, and nobody was to wait so long.
        case nothingDue(until: Timestamp)
        /// The host cannot be reached or trusted.
        case unreachable(String)
        /// APNs does not accept who we are.
        case credential(String)
        /// Answers that say the run itself is wrong.
        case breaker(String)
        /// So many tokens seem wrong that our host or topic is.
        case environmentMismatch(PushEnvironment, String)
        /// Paused or cancelled from elsewhere.
        case stateChanged(RunState)
    }

    private struct State {
        var counts = DeliveryCounts()
        var isFrozen = false
        var halt: Halt?
        var failure: (any Error)?
        var tallies: [PushEnvironment: FailureCounters] = [:]
        /// Leases being taken, and leased deliveries without a recorded outcome.
        var leasesTaken = 0
        var inHand = 0
        /// Nothing is left to lease, now or later.
        var isDone = false
        /// Environments that have nothing to lease now, and when they will have.
        var rests: [PushEnvironment: Timestamp?] = [:]
    }

    private let state: Mutex<State>
    /// Raised when there may be more to lease.
    let changed = Signal()
    /// Raised when the run is to stop.
    let stopped = Signal()
    /// Raised when the run may be over.
    let ending = Signal()

    package init(counts: DeliveryCounts, isFrozen: Bool) {
        state = Mutex(State(counts: counts, isFrozen: isFrozen))
    }

    package var counts: DeliveryCounts { state.withLock { $0.counts } }
    package var halt: Halt? { state.withLock { $0.halt } }

    /// Ends the run early: no more leases, what is on the wire is still answered and recorded. The first reason stays.
    package func stop(_ reason: Halt) {
        state.withLock { $0.halt = $0.halt ?? reason }
        raiseAll()
    }

    /// The same for what went wrong in this process; the first error stays.
    func fail(_ error: any Error) {
        state.withLock { state in
            state.failure = state.failure ?? error
            state.halt = state.halt ?? .stopRequested
        }
        raiseAll()
    }

    var failure: (any Error)? { state.withLock { $0.failure } }

    /// Returns when the run is to stop, or the task is cancelled.
    func halted() async {
        while !Task.isCancelled {
            let seen = stopped.version
            if halt != nil { return }
            await stopped.wait(after: seen)
        }
    }

    func grew(audience: Int) {
        state.withLock { state in
            state.counts.audience = max(state.counts.audience, audience)
            state.rests = [:]
        }
        changed.raise()
    }

    func froze(_ counts: DeliveryCounts) {
        state.withLock { state in
            state.counts = counts
            state.isFrozen = true
            state.rests = [:]
        }
        changed.raise()
    }

    /// The same for counts that were only read again: nobody needs waking.
    package func observed(_ counts: DeliveryCounts) {
        state.withLock { $0.counts = counts }
    }

    /// Counts what the answers of one environment say about the run as a whole, and stops it when they say that it is
    /// wrong.
    func judge(
        _ environment: PushEnvironment, topic: String,
        _ rows: [(row: OutcomePolicy.Row, device: Int64, result: PushResult)]
    ) {
        let verdict = state.withLock { state -> Halt? in
            var tally = state.tallies.removeValue(forKey: environment) ?? FailureCounters(environment, topic: topic)
            for entry in rows { tally.count(entry.row, device: entry.device, result: entry.result) }
            state.tallies[environment] = tally
            return tally.verdict
        }
        if let verdict { stop(verdict) }
    }

    private func raiseAll() {
        changed.raise()
        stopped.raise()
        ending.raise()
    }
}

/// What is in the lanes' hands, so that a run is given up only when nothing of it is.
extension RunControl {
    /// False: the run is to stop. True must be followed by ``tookLease(_:)``.
    func beginLease() -> Bool {
        state.withLock { state in
            guard state.halt == nil else { return false }
            state.leasesTaken += 1
            return true
        }
    }

    func tookLease(_ deliveries: Int) {
        state.withLock { state in
            state.leasesTaken -= 1
            state.inHand += deliveries
            if deliveries > 0 { state.rests = [:] }
        }
        ending.raise()
    }

    /// - Parameter counts: nil: they could not be recorded.
    func recorded(_ counts: DeliveryCounts?, settled: Int) {
        let isEmpty = state.withLock { state in
            if let counts { state.counts = counts }
            state.inHand -= settled
            state.rests = [:]
            return state.inHand == 0
        }
        changed.raise()
        if isEmpty { ending.raise() }
    }

    func finished() {
        state.withLock { $0.isDone = true }
        ending.raise()
    }

    /// Whether the lanes have nothing to do with the run any more.
    var isOver: Bool {
        state.withLock { $0.leasesTaken == 0 && $0.inHand == 0 && ($0.isDone || $0.halt != nil) }
    }

    /// - Parameter until: when something is due again; nil: what the environment had is done.
    func rests(_ environment: PushEnvironment, until: Timestamp?) {
        state.withLock { $0.rests[environment] = .some(until) }
        ending.raise()
    }

    /// When something is due again, while all of so many environments rest and nothing is in hand.
    func restsUntil(environments: Int) -> Timestamp? {
        state.withLock { state in
            guard state.isFrozen, state.leasesTaken == 0, state.inHand == 0, state.rests.count == environments else {
                return nil
            }
            return state.rests.values.compactMap(\.self).min()
        }
    }
}
