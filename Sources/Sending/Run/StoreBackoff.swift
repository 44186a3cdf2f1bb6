import APNs
import Model
import Platform
import Senders
package import Store
import Synchronization

/// The waits for a store that is locked, full or unreachable for a while. Nothing new starts meanwhile.
package final class StoreBackoff: Sendable {
    private static let pauses = Backoff(first: .milliseconds(100), longest: .seconds(5), jitter: { 0 })
    /// The time to wait for the store after a stop. Requests on the wire may take as long.
    private static let patienceAfterStop: Duration = .seconds(10)

    private struct State {
        /// The number of callers that wait for the store to take an outcome.
        var waiting = 0
        var wait: StoreWait?
        /// What the store did not take at the latest try.
        var refused: Set<Regular> = []
        /// When a wait for the store first found the stop, by ``WallClock/uptime``.
        var stopSeenAt: Duration?
    }

    private let state = Mutex(State())
    private let decision: StopDecision
    private let trust: TrustWindow
    private let journal: PushJournal?

    init(decision: StopDecision, trust: TrustWindow, journal: PushJournal?) {
        self.decision = decision
        self.trust = trust
        self.journal = journal
    }

    package var wait: StoreWait? { state.withLock { $0.wait } }

    /// Sets the wait that another process reports for the run.
    package func observed(_ wait: StoreWait?) { state.withLock { $0.wait = wait } }

    /// Retries an operation with growing pauses while the store refuses it for a temporary reason. Throws the refusal
    /// once `isWanted` returns false. By default, retries without a limit until a stop, and for ``patienceAfterStop``
    /// after it.
    func insisting<Value>(
        _ clock: WallClock, while isWanted: (() -> Bool)? = nil, _ body: () async throws -> Value
    ) async throws -> Value {
        var refusals = 0
        func stopWaiting() {
            if refusals > 0 { state.withLock { $0.waiting -= 1 } }
            refusals = 0
        }
        defer { stopWaiting() }
        while true {
            do {
                let value = try await body()
                stopWaiting()
                storeIsBack()
                return value
            } catch let error as StoreError where error.isPassing && (isWanted?() ?? mayWait(at: clock.uptime())) {
                if refusals == 0 { state.withLock { $0.waiting += 1 } }
                refusals += 1
                storeRefused(error, at: clock.now())
                // Also sleep in a cancelled task, because responses must be recorded.
                await Task { [pause = Self.pauses.delay(afterFailures: refusals)] in await clock.sleep(pause) }.value
            }
        }
    }

    /// Stops new requests until the store responds and the run's state is read again. The run may be paused or
    /// cancelled meanwhile.
    func storeRefused(_ error: StoreError, at now: Timestamp) {
        let wait = state.withLock { state in
            let wait = StoreWait(since: state.wait?.since ?? now, error)
            state.wait = wait
            return wait
        }
        tell(wait)
        trust.lapse()
    }

    /// A call that a run makes again and again. The store may take the one and refuse the other: no lease if the disk
    /// is full, and no heartbeat if its connection is refused.
    enum Regular {
        case lease, heartbeat
    }

    /// Does the same as ``storeRefused(_:at:)``, and keeps the wait on record until the store takes such a call.
    func refused(_ call: Regular, _ error: StoreError, at now: Timestamp) {
        state.withLock { _ = $0.refused.insert(call) }
        storeRefused(error, at: now)
    }

    func taken(_ call: Regular) {
        state.withLock { _ = $0.refused.remove(call) }
        storeIsBack()
    }

    /// Ends the wait together with its run, which takes no lease any more. Other runs report their own waits.
    func runEnded() {
        let hasWaited = state.withLock { state in
            defer { (state.wait, state.refused) = (nil, []) }
            return state.wait != nil
        }
        if hasWaited { tell(nil) }
    }

    /// Records that the store is available again. Returns `false` if other callers still wait for the store.
    @discardableResult func storeIsBack() -> Bool {
        let (isBack, hasWaited) = state.withLock { state in
            guard state.waiting == 0 else { return (false, false) }
            guard state.refused.isEmpty else { return (true, false) }
            defer { state.wait = nil }
            return (true, state.wait != nil)
        }
        if hasWaited { tell(nil) }
        return isBack
    }

    private func tell(_ wait: StoreWait?) {
        journal?.recordNote(wait.map(JournalNote.init))
        ServiceMetrics.waitsForStore(wait != nil)
    }

    private func mayWait(at uptime: Duration) -> Bool {
        guard decision.isStopAsked else { return true }
        return state.withLock { state in
            let seen = state.stopSeenAt ?? uptime
            state.stopSeenAt = seen
            return uptime < seen + Self.patienceAfterStop
        }
    }
}
