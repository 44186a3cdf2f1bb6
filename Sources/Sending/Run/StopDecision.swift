import APNs
package import Model
import Platform
import Synchronization

/// The reason why a run stops before its end.
package enum StopReason: Hashable, Sendable {
    /// A person or the operating system asked for the stop. The same command continues the run later.
    case stopRequested
    /// Nothing is due before this moment, and the caller does not wait that long.
    case nothingDue(until: Timestamp)
    /// The host cannot be reached or trusted.
    case unreachable(String)
    /// APNs does not accept the credential.
    case credential(String)
    /// Too many responses say that the requests are wrong.
    case breaker(String)
    /// The share of refused tokens is so large that the host or the topic must be wrong.
    case environmentMismatch(PushEnvironment, String)
    /// Another process paused or cancelled the run.
    case stateChanged(RunState)
    /// A stop of the run, its campaign or everything is in force until a person lifts it.
    case stopped(StopOrder)
    /// The lead of the run has exited or released it. Another sender takes the lead.
    case leadGone
    /// This sender's heartbeats take too long, and other senders continue the run.
    case storeTooSlow(String)

    /// The reason why a person must look at the responses. `nil` if no person has to.
    var halt: String? {
        switch self {
        case .breaker(let reason), .environmentMismatch(_, let reason): reason
        case .stopRequested, .nothingDue, .unreachable, .credential, .stateChanged, .stopped, .leadGone, .storeTooSlow:
            nil
        }
    }

    var waitsForPerson: Bool { halt != nil }
}

/// Whether a run is to stop, and why: an order, a fault of this process, or faults that the responses show.
package final class StopDecision: Sendable {
    private struct State {
        var reason: StopReason?
        /// The moment of a ``StopReason/stopped(_:)``, by ``BootClock``. `startedAfterStop` counts requests started
        /// later.
        var stoppedAt: UInt64?
        var startedAfterStop = 0
        /// Whether the process is to exit, whatever else stops the run.
        var isStopAsked = false
        var failure: (any Error)?
        /// The counts of responses in each environment that are about the run as a whole.
        var failures: [PushEnvironment: FailureCounters] = [:]
        /// The environments whose credential is refused, and the reason. Nothing more starts there.
        var refused: [PushEnvironment: String] = [:]
        /// The halt is being recorded, or is recorded.
        var isHaltTaken = false
        var isHaltOnRecord = false
    }

    private let state = Mutex(State())
    /// Raised when the run, or one of its environments, is to stop.
    let stopped = Signal()

    package var reason: StopReason? { state.withLock { $0.reason } }
    /// The error that ended the run in this process.
    var failure: (any Error)? { state.withLock { $0.failure } }
    var isStopAsked: Bool { state.withLock { $0.isStopAsked } }
    /// The environments whose credential is refused, and the reason.
    var refused: [PushEnvironment: String] { state.withLock { $0.refused } }

    /// Returns why nothing more starts in this environment, or `nil` if it continues.
    func reason(in environment: PushEnvironment) -> StopReason? {
        state.withLock { $0.reason ?? $0.refused[environment].map(StopReason.credential) }
    }

    func stop(_ reason: StopReason, since moment: UInt64?) {
        state.withLock { state in
            state.reason = state.reason ?? reason
            if case .stopped = reason { state.stoppedAt = state.stoppedAt ?? moment ?? BootClock.now() }
            if reason == .stopRequested { state.isStopAsked = true }
        }
        stopped.raise()
    }

    func fail(_ error: any Error) {
        state.withLock { state in
            state.failure = state.failure ?? error
            state.reason = state.reason ?? .stopRequested
            state.isStopAsked = true
        }
        stopped.raise()
    }

    func refuse(_ environment: PushEnvironment, _ reason: String) {
        state.withLock { $0.refused[environment] = $0.refused[environment] ?? reason }
        stopped.raise()
    }

    /// Waits until the run is to stop or the task is cancelled.
    func halted() async {
        while !Task.isCancelled {
            let seen = stopped.version
            if reason != nil { return }
            await stopped.wait(after: seen)
        }
    }

    /// Counts the completions whose request was started after the stop in force.
    func count(afterStop completions: [PushCompletion]) {
        state.withLock { state in
            guard let moment = state.stoppedAt else { return }
            state.startedAfterStop += completions.count { $0.startedAt > moment }
        }
    }

    var startedAfterStop: Int { state.withLock { $0.startedAfterStop } }

    /// Counts these responses. Returns the reason to stop the run that follows from all responses so far.
    func verdict(
        on environment: PushEnvironment, topic: String,
        _ rows: [(row: OutcomePolicy.Row, device: Int64, result: PushResult)]
    ) -> StopReason? {
        state.withLock { state in
            var counters = state.failures.removeValue(forKey: environment) ?? FailureCounters(environment, topic: topic)
            for entry in rows { counters.count(entry.row, device: entry.device, result: entry.result) }
            state.failures[environment] = counters
            return counters.verdict
        }
    }

    /// Returns why a person must check the run, for the caller to record. Returns `nil` if there is no such reason, or
    /// another caller records it.
    func takeHaltToNote() -> String? {
        state.withLock { state in
            guard !state.isHaltTaken, let reason = state.reason?.halt else { return nil }
            state.isHaltTaken = true
            return reason
        }
    }

    /// Marks the halt as recorded. It is not recorded again, because a person may have resumed the run since.
    func haltIsOnRecord() { state.withLock { $0.isHaltOnRecord = true } }
    var isHaltOnRecord: Bool { state.withLock { $0.isHaltOnRecord } }
}
