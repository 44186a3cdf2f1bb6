package import APNs
package import Model
package import Store
import Synchronization

/// The state of a run that all its lanes share: its counts, what is in flight, and the decision to continue or stop.
package final class RunControl: Sendable {
    fileprivate struct State {
        var counts = DeliveryCounts()
        var isFrozen = false
        var stopReason: StopReason?
        /// The moment of a ``StopReason/stopped(_:)``, by ``BootClock``. `startedAfterStop` counts requests started
        /// later.
        var stoppedAt: UInt64?
        var startedAfterStop = 0
        /// The halt is being recorded, or is recorded.
        var isHaltTaken = false
        var isHaltOnRecord = false
        var failure: (any Error)?
        var failures: [PushEnvironment: FailureCounters] = [:]
        /// The environments whose credential is refused, and the reason. Nothing more starts there.
        var refused: [PushEnvironment: String] = [:]
        /// The number of lease calls in progress.
        var leasesTaken = 0
        /// Leased deliveries without a recorded outcome.
        var inFlight = 0
        /// Nothing is left to lease, now or later.
        var isDone = false
        /// The environments that have nothing to lease now, and the time when they will have something.
        var idle: [PushEnvironment: Timestamp?] = [:]
        /// How often ``idle`` was cleared because there may be more to lease.
        var activity = 0
        /// Whether the process is to exit, whatever else stops the run.
        var isStopAsked = false
        /// When the stop was first seen while the store was unavailable, by ``WallClock/uptime``.
        var stopSeenAt: Duration?
        /// The number of callers that wait for an unavailable store to take an outcome. Nothing new starts meanwhile.
        var waitingForStore = 0
        var storeWait: StoreWait?
        /// Asks the lanes for the endpoints in trouble.
        var holds: @Sendable () -> [EndpointHold] = { [] }

        mutating func stir() {
            idle = [:]
            activity += 1
        }
    }

    private let state: Mutex<State>
    /// Raised when there may be more to lease.
    let changed = Signal()
    /// Raised when the run is to stop.
    let stopped = Signal()
    /// Raised when the run may be over.
    let ending = Signal()
    /// The gate that the lanes check before each request.
    let gate: StartGate
    private let trustWindow: Duration?
    let share: RunShare
    /// The journal, in which other processes see that this process waits for the store.
    private let journal: PushJournal?

    /// - Parameter trustWindow: how long requests may start after ``renewTrust(from:)``. `nil` means without a limit.
    package init(
        counts: DeliveryCounts, isFrozen: Bool, trustWindow: Duration? = nil, journal: PushJournal? = nil,
        isJoined: Bool = false
    ) {
        self.journal = journal
        share = RunShare(isJoined: isJoined)
        state = Mutex(State(counts: counts, isFrozen: isFrozen))
        self.trustWindow = trustWindow
        gate = StartGate(openUntil: trustWindow == nil ? BootClock.never : 0)
        renewTrust(from: .now())
    }

    package var counts: DeliveryCounts { state.withLock { $0.counts } }
    var isFrozen: Bool { state.withLock { $0.isFrozen } }
    /// The leased deliveries without a recorded outcome.
    var inFlight: Int { state.withLock { $0.inFlight } }
    package var stopReason: StopReason? { state.withLock { $0.stopReason } }
    package var storeWait: StoreWait? { state.withLock { $0.storeWait } }

    /// Ends the run early: no more leases are taken. Requests on the wire are still answered and recorded. The first
    /// reason stays.
    ///
    /// - Parameter moment: the moment of a stop, by ``BootClock``. Requests that started later are counted. Default:
    ///   now.
    package func stop(_ reason: StopReason, since moment: UInt64? = nil) {
        gate.close()
        state.withLock { state in
            state.stopReason = state.stopReason ?? reason
            if case .stopped = reason { state.stoppedAt = state.stoppedAt ?? moment ?? BootClock.now() }
            if reason == .stopRequested { state.isStopAsked = true }
        }
        raiseAll()
    }

    /// Counts the completions whose request was started after the stop in force.
    func count(afterStop completions: [PushCompletion]) {
        state.withLock { state in
            guard let moment = state.stoppedAt else { return }
            state.startedAfterStop += completions.count { $0.startedAt > moment }
        }
    }

    var startedAfterStop: Int { state.withLock { $0.startedAfterStop } }

    /// Ends the run early with an error of this process, which ``Pipeline`` throws. The first error stays.
    func fail(_ error: any Error) {
        state.withLock { state in
            state.failure = state.failure ?? error
            state.stopReason = state.stopReason ?? .stopRequested
            state.isStopAsked = true
        }
        gate.close()
        raiseAll()
    }

    var failure: (any Error)? { state.withLock { $0.failure } }

    /// Returns when the run is to stop or the task is cancelled.
    func halted() async {
        while !Task.isCancelled {
            let seen = stopped.version
            if stopReason != nil { return }
            await stopped.wait(after: seen)
        }
    }

    /// Lets requests start for another trust window. Does nothing while others wait for the store.
    ///
    /// Returns `false` if the new window is already over.
    ///
    /// - Parameter moment: when the store said that the run continues, by ``BootClock``.
    @discardableResult func renewTrust(from moment: BootMoment) -> Bool {
        guard let trustWindow, storeIsBack() else { return true }
        gate.open(for: UInt64(max(0, trustWindow.inSeconds) * 1_000_000_000), from: moment)
        return gate.answer(at: .now()) != .lapsed
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

    /// Sets counts that were only read again, and wakes no waiter.
    package func observed(_ counts: DeliveryCounts) {
        state.withLock { $0.counts = counts }
    }

    /// Sets the state that another process reports of a run that it sends.
    package func observed(_ counts: DeliveryCounts, storeWait: StoreWait?) {
        state.withLock { state in
            state.counts = counts
            state.storeWait = storeWait
        }
    }

    /// The endpoints that are backing off.
    var holds: [EndpointHold] { state.withLock { $0.holds }() }

    func ask(forHolds holds: @escaping @Sendable () -> [EndpointHold]) { state.withLock { $0.holds = holds } }

    /// Counts what the responses of one environment say about the run as a whole. Stops the run if they show that it is
    /// wrong. A refused credential stops only its environment.
    func judge(
        _ environment: PushEnvironment, topic: String,
        _ rows: [(row: OutcomePolicy.Row, device: Int64, result: PushResult)]
    ) {
        let verdict = state.withLock { state -> StopReason? in
            var counters = state.failures.removeValue(forKey: environment) ?? FailureCounters(environment, topic: topic)
            for entry in rows { counters.count(entry.row, device: entry.device, result: entry.result) }
            state.failures[environment] = counters
            return counters.verdict
        }
        switch verdict {
        case nil: break
        case .credential(let reason): refuse(environment, reason)
        case let verdict?: stop(verdict)
        }
    }

    /// Returns why a person must look at the run, for the caller that records it. Returns `nil` if another caller took
    /// it.
    func takeHaltToNote() -> String? {
        state.withLock { state in
            guard !state.isHaltTaken, let reason = state.stopReason?.halt else { return nil }
            state.isHaltTaken = true
            return reason
        }
    }

    /// Marks the halt as recorded. It is not recorded again, because a person may have resumed the run since.
    func haltIsOnRecord() { state.withLock { $0.isHaltOnRecord = true } }
    var isHaltOnRecord: Bool { state.withLock { $0.isHaltOnRecord } }

    private func raiseAll() { for signal in [changed, stopped, ending] { signal.raise() } }
}

/// A store that is locked, full or unreachable for a while.
extension RunControl {
    private static let firstPause: Duration = .milliseconds(100)
    private static let longestPause: Duration = .seconds(5)
    /// The time to wait after a stop, which is as long as requests on the wire may take.
    private static let patienceAfterStop: Duration = .seconds(10)

    /// Retries an operation that the store refuses for a temporary reason, with growing pauses and no limit. Nothing
    /// new starts meanwhile. Throws the refusal once `isWanted` returns false; by default that is when the time to wait
    /// after a stop is over.
    func insisting<Value>(
        _ clock: WallClock, while isWanted: (() -> Bool)? = nil, _ body: () async throws -> Value
    ) async throws -> Value {
        var pause = Self.firstPause
        var isWaiting = false
        func stopWaiting() {
            if isWaiting { state.withLock { $0.waitingForStore -= 1 } }
            isWaiting = false
        }
        defer { stopWaiting() }
        while true {
            do {
                let value = try await body()
                stopWaiting()
                storeIsBack()
                return value
            } catch let error as StoreError where error.isPassing && (isWanted?() ?? mayWait(at: clock.uptime())) {
                if !isWaiting { state.withLock { $0.waitingForStore += 1 } }
                isWaiting = true
                storeRefused(error, at: clock.now())
                // Also sleep in a cancelled task, because responses must be recorded.
                await Task { [pause] in await clock.sleep(pause) }.value
                pause = min(pause * 2, Self.longestPause)
            }
        }
    }

    /// Stops new requests until the store has answered and the run's state was read again. The run may have been paused
    /// or cancelled meanwhile.
    func storeRefused(_ error: StoreError, at now: Timestamp) {
        let wait = state.withLock { state in
            let wait = StoreWait(since: state.storeWait?.since ?? now, error)
            state.storeWait = wait
            return wait
        }
        tell(wait)
        if trustWindow != nil { gate.lapse() }
    }

    /// Records that the store has taken a write. Returns `false` if other callers still wait for it.
    @discardableResult func storeIsBack() -> Bool {
        let (isBack, hasWaited) = state.withLock { state in
            guard state.waitingForStore == 0 else { return (false, false) }
            defer { state.storeWait = nil }
            return (true, state.storeWait != nil)
        }
        if hasWaited { tell(nil) }
        return isBack
    }

    private func tell(_ wait: StoreWait?) {
        journal?.leave(wait.map(JournalNote.init))
        ServiceMetrics.waitsForStore(wait != nil)
    }

    private func mayWait(at uptime: Duration) -> Bool {
        state.withLock { state in
            guard state.isStopAsked else { return true }
            let seen = state.stopSeenAt ?? uptime
            state.stopSeenAt = seen
            return uptime < seen + Self.patienceAfterStop
        }
    }
}

/// What is in flight, so that a run is released only when nothing of it is.
extension RunControl {
    /// Returns `false` if the run, or this environment of it, is to stop. After `true`, call ``tookLease(_:)``.
    func beginLease(in environment: PushEnvironment) -> Bool {
        state.withLock { state in
            guard state.stopReason == nil, state.refused[environment] == nil else { return false }
            state.leasesTaken += 1
            return true
        }
    }

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

    /// Nothing is left to lease, now or later.
    func finished() {
        state.withLock { $0.isDone = true }
        ending.raise()
    }

    /// Whether the lanes have nothing more to do for the run.
    var isOver: Bool {
        state.withLock { $0.leasesTaken == 0 && $0.inFlight == 0 && ($0.isDone || $0.stopReason != nil) }
    }

    /// The number to read before looking for something to lease, and to pass to ``idles(_:until:since:)``.
    var activity: Int { state.withLock { $0.activity } }

    /// Records that an environment has nothing to lease now.
    ///
    /// - Parameters:
    ///   - until: when something is due again. `nil` if the environment has nothing left.
    ///   - activity: the value of ``activity`` before the check. Nothing is recorded if there may be more to lease
    ///     since.
    func idles(_ environment: PushEnvironment, until: Timestamp?, since activity: Int) {
        let isNoted = state.withLock { state in
            guard state.activity == activity else { return false }
            state.idle[environment] = .some(until)
            return true
        }
        if isNoted { ending.raise() }
    }

    /// Returns when something is due again. `nil` unless all of these environments are idle or refused and nothing is
    /// in flight.
    func idleUntil(environments: Set<PushEnvironment>) -> Timestamp? {
        state.withLock { $0.idle(environments)?.compactMap(\.self).min() }
    }
}

extension RunControl.State {
    /// Returns until when each of these environments is idle, without the refused ones. Returns `nil` while one of them
    /// has something to do.
    fileprivate func idle(_ environments: Set<PushEnvironment>) -> [Timestamp?]? {
        guard isFrozen, leasesTaken == 0, inFlight == 0 else { return nil }
        let open = environments.subtracting(refused.keys)
        let times = open.compactMap { idle[$0] }
        return times.count == open.count ? times : nil
    }
}

/// An environment whose credential is refused. It stops alone, and the other environments continue.
extension RunControl {
    /// Stops leasing in this environment. Requests on the wire are still answered and recorded. The first reason stays.
    func refuse(_ environment: PushEnvironment, _ reason: String) {
        state.withLock { $0.refused[environment] = $0.refused[environment] ?? reason }
        raiseAll()
    }

    /// The reason of each refusal.
    var refused: [PushEnvironment: String] { state.withLock { $0.refused } }

    /// Returns why nothing more starts in this environment, or `nil` if it continues.
    func stopReason(in environment: PushEnvironment) -> StopReason? {
        state.withLock { $0.stopReason ?? $0.refused[environment].map(StopReason.credential) }
    }

    /// Whether only refused environments have something left to send.
    func isLeftToRefused(of environments: Set<PushEnvironment>) -> Bool {
        state.withLock { state in
            guard state.stopReason == nil, !state.isDone, !state.refused.isEmpty else { return false }
            return state.idle(environments)?.allSatisfy { $0 == nil } ?? false
        }
    }
}
