package import Model
import Platform
import Store
import Synchronization

/// The progress of a run: its counts, its deliveries in flight, and whether more can be leased. The run is released
/// only when none of its deliveries is in flight.
package final class RunProgress: Sendable {
    private struct State {
        var counts: DeliveryCounts
        var isFrozen: Bool
        /// The number of lease calls in progress.
        var leasesTaken = 0
        /// Leased deliveries without a recorded outcome.
        var inFlight = 0
        var isDone = false
        /// The environments that have nothing to lease now, and the time when something is due. `nil` if nothing will
        /// be.
        var idle: [PushEnvironment: Timestamp?] = [:]
        /// How often ``idle`` was cleared because there may be more to lease.
        var activity = 0

        var isQuiet: Bool { leasesTaken == 0 && inFlight == 0 }

        mutating func stir() {
            idle = [:]
            activity += 1
        }
    }

    private let state: Mutex<State>
    /// Raised when there may be more to lease.
    let changed = Signal()
    /// Raised when the run may be over.
    let ending = Signal()

    init(counts: DeliveryCounts, isFrozen: Bool) {
        state = Mutex(State(counts: counts, isFrozen: isFrozen))
    }

    package var counts: DeliveryCounts { state.withLock { $0.counts } }
    var isFrozen: Bool { state.withLock { $0.isFrozen } }
    /// The leased deliveries without a recorded outcome.
    var inFlight: Int { state.withLock { $0.inFlight } }
    /// Whether no lease is being taken and nothing is in flight.
    var isQuiet: Bool { state.withLock { $0.isQuiet } }
    /// Whether nothing is left to lease, now or later.
    var isDone: Bool { state.withLock { $0.isDone } }

    func raise() {
        changed.raise()
        ending.raise()
    }

    /// Sets counts that were read from the store, and wakes no waiter.
    package func observed(_ counts: DeliveryCounts) {
        state.withLock { $0.counts = counts }
    }

    /// Raises the audience to what the freeze has written. 0 means that deliveries moved from one environment to the
    /// other.
    func grew(audience: Int) {
        state.withLock { state in
            state.counts.audience = max(state.counts.audience, audience)
            state.stir()
        }
        changed.raise()
    }

    /// Records that the freeze is done.
    func froze(_ counts: DeliveryCounts) {
        state.withLock { state in
            state.counts = counts
            state.isFrozen = true
            state.stir()
        }
        changed.raise()
    }

    func beginLease() { state.withLock { $0.leasesTaken += 1 } }

    func tookLease(_ deliveries: Int) {
        state.withLock { state in
            state.leasesTaken -= 1
            state.inFlight += deliveries
            if deliveries > 0 { state.stir() }
        }
        ending.raise()
    }

    /// - Parameter counts: `nil` if the outcomes could not be recorded.
    func recorded(_ counts: DeliveryCounts?, settled: Int) {
        let isEmpty = state.withLock { state in
            if let counts { state.counts = counts }
            state.inFlight -= settled
            state.stir()
            return state.inFlight == 0
        }
        changed.raise()
        if isEmpty { ending.raise() }
    }

    /// Records that nothing is left to lease, now or later.
    func finished() {
        state.withLock { $0.isDone = true }
        ending.raise()
    }

    /// A number that changes whenever there may be more to lease. Read it before the attempt to lease, and pass it to
    /// ``idles(_:until:since:)``.
    var activity: Int { state.withLock { $0.activity } }

    /// Records that an environment has nothing to lease now.
    ///
    /// - Parameters:
    ///   - until: when something is due again. `nil` if the environment has nothing left.
    ///   - activity: the value of ``activity`` before the check. If it has changed since, nothing is recorded.
    func idles(_ environment: PushEnvironment, until: Timestamp?, since activity: Int) {
        let isNoted = state.withLock { state in
            guard state.activity == activity else { return false }
            state.idle[environment] = .some(until)
            return true
        }
        if isNoted { ending.raise() }
    }

    /// Returns until when each of these environments is idle. Returns `nil` if one of them is not idle, or the run is
    /// not frozen or not quiet.
    func idle(_ environments: Set<PushEnvironment>) -> [Timestamp?]? {
        state.withLock { state in
            guard state.isFrozen, state.isQuiet else { return nil }
            let times = environments.compactMap { state.idle[$0] }
            return times.count == environments.count ? times : nil
        }
    }
}
