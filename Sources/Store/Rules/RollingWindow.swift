package import Model

/// The arithmetic of a silent budget or a frequency cap at one moment: which pushes count, and whether one more may
/// leave.
///
/// APNs counts a push at some moment between its reservation and its outcome. This window counts each push at its
/// outcome. So no window of this length can hold more than the limit, whichever moment APNs uses.
///
/// Its moments are from the wall clock, which a person may set. After the clock is set back, earlier pushes are in the
/// future, and still count. After it is set forward, earlier pushes would leave the window too early, so their ends
/// are moved forward by the same amount. In both cases a slot may be free later than necessary, but never sooner.
///
/// A store that was restored from a backup does not know what was sent between the backup and the restore. The window
/// counts as full until that time has left it.
package struct RollingWindow: Hashable, Sendable {
    /// The number of pushes that may count at any moment; none if it is not above 0.
    package let limit: Int
    package let length: Duration
    package let now: Timestamp
    /// The reason of a push that waits for a slot, or is suppressed for lack of one.
    private let reason: SuppressionReason
    /// The corrections for forward steps, oldest first. A push that ended at or before `upTo` may have ended before
    /// the step.
    private let corrections: [Correction]
    /// The time, by the present clock, until which unrecorded pushes may have left. `nil` if none of them counts.
    private let unknownUntil: Timestamp?

    private struct Correction: Hashable {
        var upTo: Timestamp
        var by: Duration
    }

    /// - Parameters:
    ///   - steps: the steps of the wall clock, oldest first; at least the latest ones.
    ///   - gap: the time that the store knows nothing about; `nil` if there is none.
    package init(
        limit: Int, length: Duration, for reason: SuppressionReason, at now: Timestamp, after steps: [ClockStep] = [],
        gap: RestoreGap? = nil
    ) {
        self.limit = limit
        self.length = length
        self.reason = reason
        self.now = now
        let corrections = Self.corrections(Self.recent(steps, since: now - length - length))
        self.corrections = corrections
        let unknown = gap.map { Self.corrected($0.restoredAt, corrections) }
        unknownUntil = unknown.flatMap { $0 > now - length ? $0 : nil }
    }

    /// The window of a silent budget.
    package init(
        _ budget: Configuration.SilentBudget, at now: Timestamp, after steps: [ClockStep] = [], gap: RestoreGap? = nil
    ) {
        self.init(limit: budget.limit, length: budget.window, for: .silentBudget, at: now, after: steps, gap: gap)
    }

    /// Returns the steps from the first one at or after `moment`, measured by the present clock. Earlier steps affect
    /// only pushes that no longer count.
    private static func recent(_ steps: [ClockStep], since moment: Timestamp) -> ArraySlice<ClockStep> {
        var later = Duration.zero
        var start = steps.endIndex
        for index in steps.indices.reversed() {
            if max(steps[index].before, steps[index].at) + later >= moment { start = index }
            later += max(steps[index].by, .zero)
        }
        return steps[start...]
    }

    /// Returns the corrections of the steps. A clock that is set back and then forward shows the same times twice. So
    /// a correction covers all times up to the highest one that a push from before the step may carry, after the
    /// earlier corrections. This may be later than the time that the clock showed at the step.
    private static func corrections(_ steps: ArraySlice<ClockStep>) -> [Correction] {
        var corrections: [Correction] = []
        var highest: Timestamp?
        for step in steps {
            let upTo = max(highest ?? step.before, step.before)
            if step.by > .zero { corrections.append(Correction(upTo: upTo, by: step.by)) }
            highest = upTo + max(step.by, .zero)
        }
        return corrections
    }

    /// A push counts if its outcome came after this moment, or has not come yet.
    package var opensAt: Timestamp { now - length }

    /// A push whose outcome came at or before this moment can be forgotten. It counts neither now nor in a check of
    /// any push that still counts.
    package var forgottenUpTo: Timestamp { opensAt - length - corrections.reduce(.zero) { $0 + $1.by } }

    /// - Parameter end: when the outcome came; `nil` while the push is in flight, however long.
    package func counts(_ end: Timestamp?) -> Bool { end.map { corrected($0) > opensAt } ?? true }

    /// Converts a time to the present clock.
    private func corrected(_ end: Timestamp) -> Timestamp { Self.corrected(end, corrections) }

    private static func corrected(_ end: Timestamp, _ corrections: [Correction]) -> Timestamp {
        corrections.reduce(end) { end, correction in end <= correction.upTo ? end + correction.by : end }
    }

    /// Whether this number of counted pushes leaves no slot.
    package func isFull(_ count: Int) -> Bool { count >= limit || unknownUntil != nil }

    /// Decides whether one more push may leave now, when it may leave, or that it cannot leave before it expires.
    ///
    /// - Parameter ends: the times of the outcomes of the pushes so far; `nil` while in flight.
    package func decide(ends: [Timestamp?], expiresAt: Timestamp?) -> LeaseDecision {
        let counted = ends.filter(counts).map { $0.map(corrected) ?? now }.sorted()
        guard isFull(counted.count) else { return .send(until: nil) }
        guard limit > 0 else { return .suppress(reason) }
        // A slot is free once the window holds only limit - 1 of the counted pushes, and no unrecorded push.
        let known = counted.count >= limit ? counted[counted.count - limit] : nil
        guard let last = [known, unknownUntil].compactMap(\.self).max() else { return .send(until: nil) }
        let free = last + length
        if let expiresAt, free >= expiresAt { return .suppress(reason) }
        return .wait(until: free, for: reason)
    }
}
