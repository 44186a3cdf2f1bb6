import APNs
import Model
import Platform
import Senders
package import Store
import Synchronization

/// The waits for a store that is locked, full or unreachable for a while. Nothing new starts meanwhile.
package final class StoreBackoff: Sendable {
    private static let pauses = Backoff(first: .milliseconds(100), longest: .seconds(5), jitter: { 0 })
    /// The time to wait after a stop, which is as long as requests on the wire may take.
    private static let patienceAfterStop: Duration = .seconds(10)

    private struct State {
        /// The number of callers that wait for the store to take an outcome.
        var waiting = 0
        var wait: StoreWait?
        /// When the stop was first seen while the store was unavailable, by ``WallClock/uptime``.
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

    /// Sets the wait that another process reports of a run that it sends.
    package func observed(_ wait: StoreWait?) { state.withLock { $0.wait = wait } }

    /// Retries an operation that the store refuses for a temporary reason, with growing pauses and no limit. Throws the
    /// refusal once `isWanted` returns false; by default that is when the time to wait after a stop is over.
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

    /// Stops new requests until the store has answered and the run's state was read again. The run may have been paused
    /// or cancelled meanwhile.
    func storeRefused(_ error: StoreError, at now: Timestamp) {
        let wait = state.withLock { state in
            let wait = StoreWait(since: state.wait?.since ?? now, error)
            state.wait = wait
            return wait
        }
        tell(wait)
        trust.lapse()
    }

    /// Records that the store has taken a write. Returns `false` if other callers still wait for it.
    @discardableResult func storeIsBack() -> Bool {
        let (isBack, hasWaited) = state.withLock { state in
            guard state.waiting == 0 else { return (false, false) }
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
