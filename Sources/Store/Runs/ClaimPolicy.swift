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

    /// Counts only if the run may be late: any other claim waits for no expensive read.
    ///
    /// - Parameters:
    ///   - record: the run as it is now, by a short read.
    ///   - counted: reads the run again and counts, see ``init(_:at:count:)``.
    package static func ofClaim(
        _ record: Run, at now: Timestamp, counted: () async throws -> OwedDeliveries
    ) async throws -> OwedDeliveries {
        var isAsked = false
        let uncounted = OwedDeliveries(record, at: now) {
            isAsked = true
            return nil
        }
        return isAsked ? try await counted() : uncounted
    }

    /// Why the run, as it is now, is not to be taken though nobody has it; nil: it may be. A run found late is to be put on
    /// record as such, but not while it is stopped. Deliveries are counted anew only
    /// where something was sent or settled since.
    ///
    /// - Parameters:
    ///   - stops: those in force.
    ///   - steps: of the wall clock, oldest first. A run that is late only by a clock that was just set forward is neither
    ///     late nor taken until the clock is confirmed: the one waits for a person, the other might send in the night.
    package func refusal(
        of run: Run, _ stops: StopOrders, at now: Timestamp, after steps: [ClockStep] = [],
        count: () throws -> LatePolicy.Owed?
    ) rethrows -> ClaimRefusal? {
        if let order = stops.order(of: run) { return .known(.stopped(order)) }
        if run.state == .paused, let pause = RunClaim(pauseOf: run) { return .known(pause) }
        var left: LatePolicy.Owed?
        let lateness = try LatePolicy(run).lateness(at: now) {
            let isUnchanged = run.counts == self.run.counts && run.heartbeatAt == self.run.heartbeatAt
            left = try isUnchanged ? owed : OwedDeliveries(run, at: now, count: count).owed
            return left
        }
        guard let lateness else { return nil }
        let time = ConfirmedTime(now, after: steps)
        if time.wait > .zero, LatePolicy(run).lateness(at: time.moment, owed: { left }) == nil {
            return .known(.unconfirmed(until: now + time.wait))
        }
        return .foundLate(reason: lateness.reason(run: run.id))
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
        guard run.halt?.waitsForPerson == true else { return nil }
        let reason = run.stateReason ?? "no reason given"
        switch run.halt {
        case .breaker: self = .breakerOpen(reason)
        case .late: self = .late(reason)
        case .stage, .volume, .grown, .restored: self = .halted(reason)
        case .approval: self = .awaitingApproval(reason)
        case .unreachable, .credential, .unsuccessful, nil: return nil
        }
    }
}

extension Run {
    /// Whether the run paused itself and continues without a person, see ``RunHalt/waitsForPerson``.
    package var isHaltedAutomatically: Bool {
        HaltRetry.isAutomatic(state, halt, pausedBy: pausedBy)
    }
}

/// When a run that paused itself is tried again without a person.
///
/// The pauses double: each is as long as the run has been halted so far, at least ``RunHalt/firstRetryAfter`` and at
/// most ``pauseMax``. The run's row is all that counts, so that a restart, a timer and several machines keep one pace.
/// ``LatePolicy`` ends the attempts `late_by_max` after the first pause.
package enum HaltRetry {
    package static let pauseMax: Duration = .seconds(300)
    /// A row that is further ahead was written before the wall clock was set back: it says nothing.
    private static let aheadMax: Duration = .seconds(60)

    /// Whether a pause ends without a person.
    package static func isAutomatic(_ state: RunState, _ halt: RunHalt?, pausedBy: String?) -> Bool {
        state == .paused && pausedBy == nil && halt?.firstRetryAfter != nil
    }

    /// Returns `nil` for a run that is not paused, or that waits for a person.
    package static func nextTry(of run: Run) -> Timestamp? {
        guard run.isHaltedAutomatically, let first = run.halt?.firstRetryAfter else { return nil }
        let last = run.heartbeatAt ?? run.createdAt
        let halted = last - (run.haltedAt ?? last)
        return last + min(max(first, halted), pauseMax)
    }

    /// Whether a sender may take the run now. Always true for a run that did not pause itself.
    package static func isDue(_ run: Run, at now: Timestamp) -> Bool {
        guard let next = nextTry(of: run) else { return true }
        return next <= now || (run.heartbeatAt ?? run.createdAt) > now + aheadMax
    }
}
