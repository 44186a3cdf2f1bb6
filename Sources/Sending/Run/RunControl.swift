package import APNs
package import Model
package import Store
import Synchronization

/// What all lanes share of a run: its counts, what is in flight, and the decision to go on or to stop.
package final class RunControl: Sendable {
    fileprivate struct State {
        var counts = DeliveryCounts()
        var isFrozen = false
        var stopReason: StopReason?
        /// The moment of a ``StopReason/stopped(_:)``, by ``BootClock``, and requests that started later.
        var stoppedAt: UInt64?
        var startedAfterStop = 0
        /// Somebody is putting it on record, or has.
        var isHaltTaken = false
        var isHaltOnRecord = false
        var failure: (any Error)?
        var failures: [PushEnvironment: FailureCounters] = [:]
        /// Environments whose credential is refused, and why: nothing more starts there.
        var refused: [PushEnvironment: String] = [:]
        /// Leases being taken just now.
        var leasesTaken = 0
        /// Leased deliveries without a recorded outcome.
        var inFlight = 0
        /// Nothing is left to lease, now or later.
        var isDone = false
        /// Environments that have nothing to lease now, and when they will have.
        var idle: [PushEnvironment: Timestamp?] = [:]
        /// Counts how often ``idle`` was forgotten because there may be more to lease.
        var activity = 0
        /// Whatever else the run stops for, the process is to end.
        var isStopAsked = false
        /// When that was seen while the store took nothing, by ``WallClock/uptime``.
        var stopSeenAt: Duration?
        /// How many wait for a store that does not take what is to be recorded; nothing new starts meanwhile.
        var waitingForStore = 0
        var storeWait: StoreWait?
        /// Asks the lanes for endpoints in trouble.
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
    /// Asked by the lanes before each request.
    let gate: StartGate
    private let trustWindow: Duration?
    let share: RunShare
    /// Where others see that this process waits for the store.
    private let journal: PushJournal?

    /// - Parameter trustWindow: no request starts later than this after ``renewTrust(from:)``; nil: at any time.
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

    /// Ends the run early: no more leases, what is on the wire is still answered and recorded. The first reason stays.
    ///
    /// - Parameter moment: of a stop, by ``BootClock``: requests that started later are counted; nil: as of now.
    package func stop(_ reason: StopReason, since moment: UInt64? = nil) {
        gate.close()
        state.withLock { state in
            state.stopReason = state.stopReason ?? reason
            if case .stopped = reason { state.stoppedAt = state.stoppedAt ?? moment ?? BootClock.now() }
            if reason == .stopRequested { state.isStopAsked = true }
        }
        raiseAll()
    }

    /// Of these, such as were started after the stop in force.
    func count(afterStop completions: [PushCompletion]) {
        state.withLock { state in
            guard let moment = state.stoppedAt else { return }
            state.startedAfterStop += completions.count { $0.startedAt > moment }
        }
    }

    var startedAfterStop: Int { state.withLock { $0.startedAfterStop } }

    /// The same for an error of this process, which ``Pipeline`` throws; the first one stays.
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

    /// Returns when the run is to stop, or the task is cancelled.
    func halted() async {
        while !Task.isCancelled {
            let seen = stopped.version
            if stopReason != nil { return }
            await stopped.wait(after: seen)
        }
    }

    /// Requests may start for another trust window, counted from a moment by ``BootClock`` at which the store said that
    /// the run is to go on; not while others wait for the store.
    /// False: none of it is left.
    @discardableResult func renewTrust(from moment: BootMoment) -> Bool {
        guard let trustWindow, storeIsBack() else { return true }
        gate.open(for: UInt64(max(0, trustWindow.inSeconds) * 1_000_000_000), from: moment)
        return gate.answer(at: .now()) != .lapsed
    }

    /// The freeze has written so many deliveries; with 0, an environment was given some of the other one's.
    func grew(audience: Int) {
        state.withLock { state in
            state.counts.audience = max(state.counts.audience, audience)
            state.stir()
        }
        changed.raise()
    }

    /// The freeze is done.
    func froze(_ counts: DeliveryCounts) {
        state.withLock { state in
            state.counts = counts
            state.isFrozen = true
            state.stir()
        }
        changed.raise()
    }

    /// Counts that were only read again; nobody is woken.
    package func observed(_ counts: DeliveryCounts) {
        state.withLock { $0.counts = counts }
    }

    /// Takes over what another process says of a run that it sends.
    package func observed(_ counts: DeliveryCounts, storeWait: StoreWait?) {
        state.withLock { state in
            state.counts = counts
            state.storeWait = storeWait
        }
    }

    /// Endpoints that are left alone for now.
    var holds: [EndpointHold] { state.withLock { $0.holds }() }

    func ask(forHolds holds: @escaping @Sendable () -> [EndpointHold]) { state.withLock { $0.holds = holds } }

    /// Counts what the answers of one environment say about the run as a whole, and stops it when they say that it is
    /// wrong; a refused credential stops its environment alone.
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

    /// Why a person has to look at the run; once, for whoever puts it on record.
    func takeHaltToNote() -> String? {
        state.withLock { state in
            guard !state.isHaltTaken, let reason = state.stopReason?.halt else { return nil }
            state.isHaltTaken = true
            return reason
        }
    }

    /// Once it is, a person may have said that the run is to go on all the same: it is not put on record again.
    func haltIsOnRecord() { state.withLock { $0.isHaltOnRecord = true } }
    var isHaltOnRecord: Bool { state.withLock { $0.isHaltOnRecord } }

    private func raiseAll() { for signal in [changed, stopped, ending] { signal.raise() } }
}

/// A store that is locked, full or away for a while.
extension RunControl {
    private static let firstPause: Duration = .milliseconds(100)
    private static let longestPause: Duration = .seconds(5)
    /// After a stop was asked for, as long as requests on the wire may take.
    private static let patienceAfterStop: Duration = .seconds(10)

    /// Does what the store refuses for a passing reason again, with growing pauses, as long as it takes; nothing new is
    /// started meanwhile. Throws the refusal once `isWanted` says no: after a stop, when the patience is over.
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
                // Also in a task that is cancelled: what was answered is to be recorded.
                await Task { [pause] in await clock.sleep(pause) }.value
                pause = min(pause * 2, Self.longestPause)
            }
        }
    }

    /// Nothing new starts until the store has answered, and after that not before the run was asked for: it may have
    /// been paused or cancelled meanwhile.
    func storeRefused(_ error: StoreError, at now: Timestamp) {
        let wait = state.withLock { state in
            let wait = StoreWait(since: state.storeWait?.since ?? now, error)
            state.storeWait = wait
            return wait
        }
        tell(wait)
        if trustWindow != nil { gate.lapse() }
    }

    /// It has taken something. False: others still wait for it.
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

/// What is in flight, so that a run is given up only when nothing of it is.
extension RunControl {
    /// False: the run is to stop, or this environment of it. True must be followed by ``tookLease(_:)``.
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

    /// - Parameter counts: nil: they could not be recorded.
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

    /// Whether the lanes have nothing to do with the run any more.
    var isOver: Bool {
        state.withLock { $0.leasesTaken == 0 && $0.inFlight == 0 && ($0.isDone || $0.stopReason != nil) }
    }

    /// To be taken before looking for something to lease, and given to ``idles(_:until:since:)``.
    var activity: Int { state.withLock { $0.activity } }

    /// - Parameters:
    ///   - until: when something is due again; nil: what the environment had is done.
    ///   - activity: nothing is noted when there may have come more to lease since.
    func idles(_ environment: PushEnvironment, until: Timestamp?, since activity: Int) {
        let isNoted = state.withLock { state in
            guard state.activity == activity else { return false }
            state.idle[environment] = .some(until)
            return true
        }
        if isNoted { ending.raise() }
    }

    /// When something is due again, while all of these environments are idle or refused and nothing is in flight.
    func idleUntil(environments: Set<PushEnvironment>) -> Timestamp? {
        state.withLock { $0.idle(environments)?.compactMap(\.self).min() }
    }
}

extension RunControl.State {
    /// Until when each of these environments is idle, those refused left out; nil while one of them has something to
    /// do.
    fileprivate func idle(_ environments: Set<PushEnvironment>) -> [Timestamp?]? {
        guard isFrozen, leasesTaken == 0, inFlight == 0 else { return nil }
        let open = environments.subtracting(refused.keys)
        let times = open.compactMap { idle[$0] }
        return times.count == open.count ? times : nil
    }
}

/// An environment whose credential is refused: it stops by itself, and the others go on.
extension RunControl {
    /// Nothing more is leased there; what is on the wire is still answered and recorded. The first reason stays.
    func refuse(_ environment: PushEnvironment, _ reason: String) {
        state.withLock { $0.refused[environment] = $0.refused[environment] ?? reason }
        raiseAll()
    }

    /// Why each of them is.
    var refused: [PushEnvironment: String] { state.withLock { $0.refused } }

    /// Why nothing more starts in this environment; nil: it goes on.
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
