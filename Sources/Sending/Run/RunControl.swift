package import APNs
import Histogram
package import Model
import Store
import Synchronization

/// What all lanes share of a run: its counts, what is in flight, and the decision to go on or to stop.
package final class RunControl: Sendable {
    /// Why a run stops before its end.
    package enum Halt: Hashable, Sendable {
        /// Somebody asked for it: the same command goes on later.
        case stopRequested
        /// Nothing is due before this moment, which is further away than the caller waits.
        case nothingDue(until: Timestamp)
        /// The host cannot be reached or trusted.
        case unreachable(String)
        /// APNs does not accept the credential.
        case credential(String)
        /// Too many answers say that the requests are wrong.
        case breaker(String)
        /// So many tokens seem wrong that the host or the topic must be.
        case environmentMismatch(PushEnvironment, String)
        /// Paused or cancelled from elsewhere.
        case stateChanged(RunState)
    }

    private struct State {
        var counts = DeliveryCounts()
        var isFrozen = false
        var halt: Halt?
        var failure: (any Error)?
        var failures: [PushEnvironment: FailureCounters] = [:]
        /// Leases being taken just now.
        var leasesTaken = 0
        /// Leased deliveries without a recorded outcome.
        var inFlight = 0
        /// Nothing is left to lease, now or later.
        var isDone = false
        /// Environments that have nothing to lease now, and when they will have.
        var idle: [PushEnvironment: Timestamp?] = [:]
        /// Asks the lanes for endpoints in trouble.
        var holds: @Sendable () -> [EndpointHold] = { [] }
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

    /// The same for an error of this process, which ``Pipeline`` throws; the first one stays.
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

    /// The freeze has written so many deliveries.
    func grew(audience: Int) {
        state.withLock { state in
            state.counts.audience = max(state.counts.audience, audience)
            state.idle = [:]
        }
        changed.raise()
    }

    /// The freeze is done.
    func froze(_ counts: DeliveryCounts) {
        state.withLock { state in
            state.counts = counts
            state.isFrozen = true
            state.idle = [:]
        }
        changed.raise()
    }

    /// Counts that were only read again; nobody is woken.
    package func observed(_ counts: DeliveryCounts) {
        state.withLock { $0.counts = counts }
    }

    /// Endpoints that are left alone for now.
    var holds: [EndpointHold] { state.withLock { $0.holds }() }

    func ask(forHolds holds: @escaping @Sendable () -> [EndpointHold]) { state.withLock { $0.holds = holds } }

    /// Counts what the answers of one environment say about the run as a whole, and stops it when they say that it is
    /// wrong.
    func judge(
        _ environment: PushEnvironment, topic: String,
        _ rows: [(row: OutcomePolicy.Row, device: Int64, result: PushResult)]
    ) {
        let verdict = state.withLock { state -> Halt? in
            var counters = state.failures.removeValue(forKey: environment) ?? FailureCounters(environment, topic: topic)
            for entry in rows { counters.count(entry.row, device: entry.device, result: entry.result) }
            state.failures[environment] = counters
            return counters.verdict
        }
        if let verdict { stop(verdict) }
    }

    private func raiseAll() {
        changed.raise()
        stopped.raise()
        ending.raise()
    }
}

/// What is in flight, so that a run is given up only when nothing of it is.
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
            state.inFlight += deliveries
            if deliveries > 0 { state.idle = [:] }
        }
        ending.raise()
    }

    /// - Parameter counts: nil: they could not be recorded.
    func recorded(_ counts: DeliveryCounts?, settled: Int) {
        let isEmpty = state.withLock { state in
            if let counts { state.counts = counts }
            state.inFlight -= settled
            state.idle = [:]
            return state.inFlight == 0
        }
        changed.raise()
        if isEmpty { ending.raise() }
    }

    /// Nothing is left to lease, now or later.
    func finished() {
        state.withLock { $0.isDone = true }
        ending.raise()
    }

    /// Whether the lanes have nothing to do with the run any more.
    var isOver: Bool {
        state.withLock { $0.leasesTaken == 0 && $0.inFlight == 0 && ($0.isDone || $0.halt != nil) }
    }

    /// - Parameter until: when something is due again; nil: what the environment had is done.
    func idles(_ environment: PushEnvironment, until: Timestamp?) {
        state.withLock { $0.idle[environment] = .some(until) }
        ending.raise()
    }

    /// When something is due again, while all of so many environments are idle and nothing is in flight.
    func idleUntil(environments: Int) -> Timestamp? {
        state.withLock { state in
            guard state.isFrozen, state.leasesTaken == 0, state.inFlight == 0, state.idle.count == environments else {
                return nil
            }
            return state.idle.values.compactMap(\.self).min()
        }
    }
}

/// One run as the lanes see it: how its leases become pushes, and what comes of them outcomes in the store.
struct RunInProgress: Sendable {
    let record: Run
    let renderers: VariantRenderers
    let ids: PushIDSpace
    let control: RunControl
    let settlementPolicy: SettlementPolicy
    let latencies: LatencyRecorder
    let store: any SendingStore
    let clock: WallClock

    var id: Int64 { record.id }
    var campaign: Campaign { record.definition.campaign }

    func composer() -> PushComposer { PushComposer(run: record, renderers: renderers, ids: ids) }

    /// Records what came of these deliveries, one completion each; returns what they say of the endpoint.
    func settle(
        _ sent: [SettlementPolicy.Sent], _ completions: [PushCompletion], in environment: PushEnvironment
    ) async -> [CircuitBreaker.Observation] {
        let now = clock.now()
        let rows = completions.map { OutcomePolicy.row(for: $0.result) }
        let settlements = zip(zip(sent, completions), rows).map { pair, row in
            settlementPolicy.settlement(of: pair.0, pair.1.result, row, now: now)
        }
        await write(settlements, now: now)
        latencies.record(completions)
        control.judge(
            environment, topic: campaign.deviceTopic,
            rows.indices.map { (rows[$0], sent[$0].device, completions[$0].result) })
        return rows.indices.map { CircuitBreaker.Observation(rows[$0], completions[$0].result) }
    }

    /// Records these as suppressed: their payload is over Apple's limit.
    func suppressTooLarge(_ deliveries: [SettlementPolicy.Sent]) async {
        guard !deliveries.isEmpty else { return }
        let settlements = deliveries.map {
            Settlement(
                lease: $0.lease, device: $0.device, generation: $0.generation, attempt: $0.attempt,
                verdict: .suppressed(.payloadTooLarge), mayHaveReachedAPNs: false, localeIndex: $0.localeIndex)
        }
        await write(settlements, now: clock.now())
    }

    /// Makes deliveries of which no request was started pending again.
    func giveBack(_ deliveries: [SettlementPolicy.Sent]) async {
        guard !deliveries.isEmpty else { return }
        let now = clock.now()
        let result = PushResult.notSent(.stopped)
        let row = OutcomePolicy.row(for: result)
        await write(deliveries.map { settlementPolicy.settlement(of: $0, result, row, now: now) }, now: now)
    }

    /// An outcome that cannot be recorded stops this run and no other; the next claim finds the delivery in doubt.
    private func write(_ settlements: [Settlement], now: Timestamp) async {
        do {
            let counts = try await store.settle(run: id, settlements, now: now)
            control.recorded(counts, settled: settlements.count)
        } catch {
            control.fail(error)
            control.recorded(nil, settled: settlements.count)
        }
    }
}

/// How long answers took, from the first byte of the request written, over all lanes of a run.
package final class LatencyRecorder: Sendable {
    private let histogram = Mutex(
        Histogram<UInt32>(highestTrackableValue: 120_000_000, numberOfSignificantValueDigits: .two))

    package init() {}

    package func record(_ completions: [PushCompletion]) {
        histogram.withLock { histogram in
            for completion in completions where completion.latencyMicroseconds > 0 {
                histogram.record(UInt64(completion.latencyMicroseconds))
            }
        }
    }

    /// Microseconds at this percentile (0 to 100); nil when nothing was answered.
    package func microseconds(atPercentile percentile: Double) -> Int? {
        histogram.withLock { histogram in
            histogram.totalCount == 0 ? nil : Int(histogram.valueAtPercentile(percentile))
        }
    }
}
