import APNs
package import Model
import Synchronization

/// What all lanes of a run share: the account, and the decision to go on or to stop.
package final class RunControl: Sendable {
    /// Why a run stops before its end.
    package enum Halt: Hashable, Sendable {
        /// Asked to: the same command goes on later.
        case stopRequested
        /// The host cannot be reached or trusted.
        case unreachable(String)
        /// APNs does not accept who we are.
        case credential(String)
        /// Answers that say the run itself is wrong.
        case breaker(String)
        /// So many tokens seem wrong that our host or topic is.
        case wrongPlace(PushEnvironment, String)
        /// Paused or cancelled from elsewhere.
        case stateChanged(RunState)
    }

    private struct State {
        var counts = DeliveryCounts()
        var isFrozen = false
        var halt: Halt?
        var tallies: [PushEnvironment: AnswerTally] = [:]
    }

    private let state: Mutex<State>
    let changed = Signal()
    private let stopped = Signal()

    package init(counts: DeliveryCounts, isFrozen: Bool) {
        state = Mutex(State(counts: counts, isFrozen: isFrozen))
    }

    package var counts: DeliveryCounts { state.withLock { $0.counts } }
    package var halt: Halt? { state.withLock { $0.halt } }

    /// Ends the run early: no more leases, what is on the wire is still answered and recorded. The first reason stays.
    package func stop(_ reason: Halt) {
        state.withLock { $0.halt = $0.halt ?? reason }
        changed.raise()
        stopped.raise()
    }

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
        }
        changed.raise()
    }

    func froze(_ counts: DeliveryCounts) {
        state.withLock { state in
            state.counts = counts
            state.isFrozen = true
        }
        changed.raise()
    }

    func recorded(_ counts: DeliveryCounts) {
        state.withLock { $0.counts = counts }
        changed.raise()
    }

    /// The same for counts that were only read again: nobody needs waking.
    func observed(_ counts: DeliveryCounts) {
        state.withLock { $0.counts = counts }
    }

    /// Counts what the answers of one environment say about the run as a whole, and stops it when they say that it is
    /// wrong.
    func judge(
        _ environment: PushEnvironment, topic: String,
        _ rows: [(row: OutcomePolicy.Row, device: Int64, result: PushResult)]
    ) {
        let verdict = state.withLock { state -> Halt? in
            var tally = state.tallies.removeValue(forKey: environment) ?? AnswerTally(environment, topic: topic)
            for entry in rows { tally.count(entry.row, device: entry.device, result: entry.result) }
            state.tallies[environment] = tally
            return tally.verdict
        }
        if let verdict { stop(verdict) }
    }
}
