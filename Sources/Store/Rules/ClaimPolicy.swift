package import Model

/// What a run still has to send, counted where ``LatePolicy`` asks for it.
package struct OwedDeliveries: Sendable {
    private let run: Run
    private let owed: LatePolicy.Owed?

    /// - Parameter count: of what has no outcome; nil: everything has.
    package init(_ run: Run, at now: Timestamp, count: () throws -> LatePolicy.Owed?) rethrows {
        self.run = run
        var counted: LatePolicy.Owed?
        _ = try LatePolicy(run).lateness(at: now) {
            counted = run.counts.pending + run.counts.leased > 0 ? try count() : nil
            return counted
        }
        owed = counted
    }

    /// Why the run, as it is now, is not to be taken though nobody has it; nil: it may be. A run found late is to be put on
    /// record as such, but not while it is stopped. Deliveries are counted anew only
    /// where something was sent or settled since.
    ///
    /// - Parameter stops: those in force.
    package func refusal(
        of run: Run, _ stops: StopOrders, at now: Timestamp, count: () throws -> LatePolicy.Owed?
    ) rethrows -> ClaimRefusal? {
        if let order = stops.order(run: run.id, campaign: run.campaign) { return .known(.stopped(order)) }
        if run.state == .paused, let pause = RunClaim(pauseOf: run) { return .known(pause) }
        let lateness = try LatePolicy(run).lateness(at: now) {
            let isUnchanged = run.counts == self.run.counts && run.heartbeatAt == self.run.heartbeatAt
            return try isUnchanged ? owed : OwedDeliveries(run, at: now, count: count).owed
        }
        return lateness.map { .foundLate(reason: $0.reason(run: run.id)) }
    }
}

package enum ClaimRefusal: Hashable, Sendable {
    /// On record already.
    case known(RunClaim)
    case foundLate(reason: String)
}

extension RunClaim {
    /// Nil for a pause that the next owner ends by itself.
    fileprivate init?(pauseOf run: Run) {
        if let person = run.pausedBy {
            self = .paused(by: person, reason: run.stateReason)
            return
        }
        let reason = run.stateReason ?? "no reason given"
        switch run.halt {
        case .breaker: self = .breakerOpen(reason)
        case .late: self = .late(reason)
        case .stage, .volume, .grown: self = .halted(reason)
        case .approval: self = .awaitingApproval(reason)
        case .unreachable, .credential, nil: return nil
        }
    }
}
