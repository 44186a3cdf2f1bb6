package import Model

/// The arithmetic of a silent budget or a frequency cap at one moment: which pushes count, and whether one more may leave.
///
/// A push left counts at APNs at some moment between its reservation and its outcome. Counting each by the later end,
/// no window of that length seen from APNs can hold more than the limit, whichever moments they were.
///
/// Its moments are the wall clock's, which somebody may set. Set back, it puts pushes into the future: they count. Set
/// forward, it would let those before leave the window early: they are taken to have ended as much later. Either way a
/// slot may be free later than it could be, never sooner.
///
/// A store that was restored from a backup does not know what was sent since. The window counts as full until it holds
/// nothing of that time.
package struct RollingWindow: Hashable, Sendable {
    /// Pushes that may count at any moment; none when it is not above 0.
    package let limit: Int
    package let length: Duration
    package let now: Timestamp
    /// Of what waits for a slot, or is left out for want of one.
    private let reason: SuppressionReason
    /// The steps forward, oldest first: what ended up to a moment of the wall clock may have ended before.
    private let corrections: [Correction]
    /// By the clock as it goes now, until when pushes may have left that are on no record. `nil` if none of them counts.
    private let unknownUntil: Timestamp?

    private struct Correction: Hashable {
        var upTo: Timestamp
        var by: Duration
    }

    /// - Parameters:
    ///   - steps: of the wall clock, oldest first, the latest at least.
    ///   - gap: what the store knows nothing of; `nil`: nothing.
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

    /// The silent budget's.
    package init(
        _ budget: Configuration.SilentBudget, at now: Timestamp, after steps: [ClockStep] = [], gap: RestoreGap? = nil
    ) {
        self.init(limit: budget.limit, length: budget.window, for: .silentBudget, at: now, after: steps, gap: gap)
    }

    /// From the first step on that lies behind a moment by the clock as it goes now: what ended before the others does
    /// not matter any more.
    private static func recent(_ steps: [ClockStep], since moment: Timestamp) -> ArraySlice<ClockStep> {
        var later = Duration.zero
        var start = steps.endIndex
        for index in steps.indices.reversed() {
            if max(steps[index].before, steps[index].at) + later >= moment { start = index }
            later += max(steps[index].by, .zero)
        }
        return steps[start...]
    }

    /// A clock set back and then forward shows the same times twice. So a correction goes up to the highest time that
    /// any push from before the step may carry, corrected for the steps before it, not to what was shown at the step.
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

    /// A push counts while its outcome came after this moment, or has not come yet.
    package var opensAt: Timestamp { now - length }

    /// A push whose outcome came up to this moment can be forgotten: it counts neither now nor for a look back at any
    /// push that still counts.
    package var forgottenUpTo: Timestamp { opensAt - length - corrections.reduce(.zero) { $0 + $1.by } }

    /// - Parameter end: when the outcome came; nil while in flight, which may go on.
    package func counts(_ end: Timestamp?) -> Bool { end.map { corrected($0) > opensAt } ?? true }

    /// By the clock as it goes now.
    private func corrected(_ end: Timestamp) -> Timestamp { Self.corrected(end, corrections) }

    private static func corrected(_ end: Timestamp, _ corrections: [Correction]) -> Timestamp {
        corrections.reduce(end) { end, correction in end <= correction.upTo ? end + correction.by : end }
    }

    /// Whether so many pushes that count leave no slot.
    package func isFull(_ count: Int) -> Bool { count >= limit || unknownUntil != nil }

    /// Whether one more push may leave now, when it may, or that it never will before it expires.
    ///
    /// - Parameter ends: of the pushes so far, when the outcome came; nil while in flight.
    package func decide(ends: [Timestamp?], expiresAt: Timestamp?) -> LeaseDecision {
        let counted = ends.filter(counts).map { $0.map(corrected) ?? now }.sorted()
        guard isFull(counted.count) else { return .send(until: nil) }
        guard limit > 0 else { return .suppress(reason) }
        // A slot is free once all but limit - 1 of them have left the window, and all that may have been sent unknown.
        let known = counted.count >= limit ? counted[counted.count - limit] : nil
        guard let last = [known, unknownUntil].compactMap(\.self).max() else { return .send(until: nil) }
        let free = last + length
        if let expiresAt, free >= expiresAt { return .suppress(reason) }
        return .wait(until: free, for: reason)
    }
}
