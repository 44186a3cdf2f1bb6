package import Model

/// What becomes of a pending delivery that is looked at for sending.
package enum LeaseDecision: Hashable {
    case send
    /// Put off; if nothing else happens it would be suppressed for this cause.
    case wait(until: Timestamp, for: SuppressionReason)
    case suppress(SuppressionReason)
}

/// Whether one more background push may leave now: the arithmetic of the silent budget.
///
/// A push left counts at APNs at some moment between its reservation and its outcome. Counting each by the later end,
/// no window of that length seen from APNs can hold more than the limit, whichever moments they were.
package enum SilentSlot {
    /// - Parameter ends: of the device's pushes, when the outcome came; nil while in flight, which may go on.
    package static func decide(
        ends: [Int64?], budget: Configuration.SilentBudget, now: Timestamp, expiresAt: Timestamp?
    ) -> LeaseDecision {
        let windowMs = budget.window.wholeMilliseconds
        let counted = ends.map { $0 ?? now.milliseconds }.filter { $0 > now.milliseconds - windowMs }.sorted()
        guard counted.count >= budget.limit else { return .send }
        guard budget.limit > 0 else { return .suppress(.silentBudget) }
        // A slot is free once all but limit - 1 of them have left the window.
        let free = Timestamp(milliseconds: counted[counted.count - budget.limit] + windowMs)
        if let expiresAt, free >= expiresAt { return .suppress(.silentBudget) }
        return .wait(until: free, for: .silentBudget)
    }
}
