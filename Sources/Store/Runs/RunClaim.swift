package import Model

/// The deliveries that a run still has to send, counted only if ``LatePolicy`` needs the count.
package struct RemainingDeliveries: Sendable {
    private let run: Run
    private let remaining: LatePolicy.Remaining?

    /// - Parameter count: counts the deliveries without an outcome; returns `nil` if every delivery has one.
    package init(_ run: Run, at now: Timestamp, count: () throws -> LatePolicy.Remaining?) rethrows {
        self.run = run
        var counted: LatePolicy.Remaining?
        _ = try LatePolicy(run).lateness(at: now) {
            counted = run.counts.pending + run.counts.leased > 0 ? try count() : nil
            return counted
        }
        remaining = counted
    }

    /// Counts only if the run may be late, so that no other claim waits for an expensive read.
    ///
    /// - Parameters:
    ///   - record: the run as it is now, from a short read.
    ///   - counted: reads the run again and counts, see ``init(_:at:count:)``.
    package static func ofClaim(
        _ record: Run, at now: Timestamp, counted: () async throws -> RemainingDeliveries
    ) async throws -> RemainingDeliveries {
        var isAsked = false
        let uncounted = RemainingDeliveries(record, at: now) {
            isAsked = true
            return nil
        }
        return isAsked ? try await counted() : uncounted
    }

    /// Returns why the run, as it is now, may not be claimed although it has no owner; `nil` if it may. A run that is
    /// found late must be recorded as late, but not while it is stopped. Deliveries are counted again only if something
    /// was sent or settled since.
    ///
    /// - Parameters:
    ///   - stops: the stops in force.
    ///   - steps: the steps of the wall clock, oldest first. A run may look late only because the clock was just set
    ///     forward. Such a run is neither recorded as late nor claimed until the clock is confirmed: a late run would
    ///     wait for a person, and a claimed run might send at night.
    package func refusal(
        of run: Run, _ stops: StopOrders, at now: Timestamp, after steps: [ClockStep] = [],
        count: () throws -> LatePolicy.Remaining?
    ) rethrows -> ClaimRefusal? {
        if let order = stops.order(of: run) { return .known(.stopped(order)) }
        if run.state == .paused, let pause = RunClaim(pauseOf: run) { return .known(pause) }
        var left: LatePolicy.Remaining?
        let lateness = try LatePolicy(run).lateness(at: now) {
            let isUnchanged = run.counts == self.run.counts && run.heartbeatAt == self.run.heartbeatAt
            left = try isUnchanged ? remaining : RemainingDeliveries(run, at: now, count: count).remaining
            return left
        }
        guard let lateness else { return nil }
        let time = ConfirmedTime(now, after: steps)
        if time.wait > .zero, LatePolicy(run).lateness(at: time.moment, remaining: { left }) == nil {
            return .known(.unconfirmed(until: now + time.wait))
        }
        return .foundLate(reason: lateness.reason(run: run.id))
    }
}

package enum ClaimRefusal: Hashable, Sendable {
    /// The refusal is recorded already.
    case known(RunClaim)
    case foundLate(reason: String)
}

extension RunClaim {
    /// Returns `nil` for a pause that the next owner ends automatically.
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
/// most ``pauseMax``. The times depend only on the run's row, so restarts, timers and several machines do not change
/// them. ``LatePolicy`` ends the attempts `late_by_max` after the first pause.
package enum HaltRetry {
    package static let pauseMax: Duration = .seconds(300)
    /// The tolerance for a heartbeat in the future. A heartbeat further ahead was recorded before the wall clock was
    /// set back, and is ignored.
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

    /// Returns whether a sender may claim the run now. The result is always `true` for a run that did not pause
    /// itself.
    package static func isDue(_ run: Run, at now: Timestamp) -> Bool {
        guard let next = nextTry(of: run) else { return true }
        return next <= now || (run.heartbeatAt ?? run.createdAt) > now + aheadMax
    }
}
