package import APNs
package import Model
import Platform
import Store

/// The state that the lanes of a run share. Each of its four parts owns one kind of state:
///
/// | part | owns |
/// |---|---|
/// | ``RunProgress`` | the counts, what is in flight, and what is left to lease |
/// | ``StopDecision`` | whether the run, or an environment of it, is to stop, and why |
/// | ``TrustWindow`` | how long requests may start without a new word from the store |
/// | ``StoreBackoff`` | the waits for a store that takes nothing for a while |
///
/// This type holds only what concerns several parts.
package final class RunControl: Sendable {
    package let progress: RunProgress
    package let decision = StopDecision()
    let trust: TrustWindow
    package let storeBackoff: StoreBackoff
    /// This sender's share of a run that several senders send.
    let share: RunShare

    /// - Parameters:
    ///   - trustWindow: how long requests may start after ``renewTrust(from:)``. `nil` means without a limit.
    ///   - journal: the journal, in which other processes see that this process waits for the store.
    package init(
        counts: DeliveryCounts, isFrozen: Bool, trustWindow: Duration? = nil, journal: PushJournal? = nil,
        isJoined: Bool = false
    ) {
        progress = RunProgress(counts: counts, isFrozen: isFrozen)
        trust = TrustWindow(trustWindow)
        storeBackoff = StoreBackoff(decision: decision, trust: trust, journal: journal)
        share = RunShare(isJoined: isJoined)
    }

    /// Ends the run early: no more deliveries are leased. Requests on the wire still get their responses, which are
    /// recorded. If the run is already ending, its reason stays.
    ///
    /// - Parameter moment: the moment of a stop, by ``BootClock``. Requests that started later are counted. Default:
    ///   now.
    package func stop(_ reason: StopReason, since moment: UInt64? = nil) {
        trust.gate.close()
        decision.stop(reason, since: moment)
        progress.raise()
    }

    /// Ends the run early with an error of this process, which ``Pipeline`` throws. A later error does not replace the
    /// first.
    func fail(_ error: any Error) {
        decision.fail(error)
        trust.gate.close()
        progress.raise()
    }

    /// Stops leasing in this environment, and the other environments continue. Requests on the wire still get their
    /// responses, which are recorded. A later reason does not replace the first.
    func refuse(_ environment: PushEnvironment, _ reason: String) {
        decision.refuse(environment, reason)
        progress.raise()
    }

    /// Counts the responses of one environment that are about the run as a whole. Stops the run if they show a fault of
    /// its requests. A refused credential stops only its environment.
    func judge(
        _ environment: PushEnvironment, topic: String,
        _ rows: [(row: OutcomePolicy.Row, device: Int64, result: PushResult)]
    ) {
        switch decision.verdict(on: environment, topic: topic, rows) {
        case nil: break
        case .credential(let reason): refuse(environment, reason)
        case let verdict?: stop(verdict)
        }
    }

    /// Lets requests start for another trust window. Does nothing while other callers wait for the store.
    ///
    /// Returns `false` if the new window is already over.
    ///
    /// - Parameter moment: when the heartbeat that confirmed the run began, by ``BootClock``.
    @discardableResult func renewTrust(from moment: BootMoment) -> Bool {
        guard trust.isLimited, storeBackoff.storeIsBack() else { return true }
        return trust.renew(from: moment)
    }

    /// Returns `false` if the run, or this environment of it, is to stop. After `true`, call
    /// ``RunProgress/tookLease(_:)``.
    ///
    /// This counts the lease before it reads the decision, and ``isOver`` reads them in the opposite order. So no
    /// delivery of a run that counts as over is leased.
    func beginLease(in environment: PushEnvironment) -> Bool {
        progress.beginLease()
        guard decision.reason(in: environment) == nil else {
            progress.tookLease(0)
            return false
        }
        return true
    }

    /// Whether the lanes have nothing more to do for the run.
    var isOver: Bool {
        let isStopped = decision.reason != nil
        return progress.isQuiet && (isStopped || progress.isDone)
    }

    /// Returns when something is due again. `nil` unless all of these environments are idle or refused and nothing is
    /// in flight.
    func idleUntil(environments: Set<PushEnvironment>) -> Timestamp? {
        progress.idle(environments.subtracting(decision.refused.keys))?.compactMap(\.self).min()
    }

    /// Whether only refused environments have something left to send.
    func isLeftToRefused(of environments: Set<PushEnvironment>) -> Bool {
        let refused = decision.refused
        guard decision.reason == nil, !refused.isEmpty, !progress.isDone else { return false }
        return progress.idle(environments.subtracting(refused.keys))?.allSatisfy { $0 == nil } ?? false
    }
}
