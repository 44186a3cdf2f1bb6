package import Model

/// The arithmetic of the silent budget at one moment: which background pushes count, and whether one more may leave.
///
/// A push left counts at APNs at some moment between its reservation and its outcome. Counting each by the later end,
/// no window of that length seen from APNs can hold more than the limit, whichever moments they were.
package struct SilentWindow: Hashable, Sendable {
    package let budget: Configuration.SilentBudget
    package let now: Timestamp

    package init(_ budget: Configuration.SilentBudget, at now: Timestamp) {
        self.budget = budget
        self.now = now
    }

    /// A push counts while its outcome came after this moment, or has not come yet.
    package var opensAt: Timestamp { now - budget.window }

    /// A push whose outcome came up to this moment can be forgotten: it counts neither now nor for a look back at any
    /// push that still counts.
    package var forgottenUpTo: Timestamp { opensAt - budget.window }

    /// - Parameter end: when the outcome came; nil while in flight, which may go on.
    package func counts(_ end: Timestamp?) -> Bool { end.map { $0 > opensAt } ?? true }

    /// Whether so many pushes that count leave no slot.
    package func isFull(_ count: Int) -> Bool { count >= budget.limit }

    /// Whether one more background push may leave now, when it may, or that it never will before it expires.
    ///
    /// - Parameter ends: of the device's pushes, when the outcome came; nil while in flight.
    package func decide(ends: [Timestamp?], expiresAt: Timestamp?) -> LeaseDecision {
        let counted = ends.filter(counts).map { $0 ?? now }.sorted()
        guard isFull(counted.count) else { return .send(until: nil) }
        guard budget.limit > 0 else { return .suppress(.silentBudget) }
        // A slot is free once all but limit - 1 of them have left the window.
        let free = counted[counted.count - budget.limit] + budget.window
        if let expiresAt, free >= expiresAt { return .suppress(.silentBudget) }
        return .wait(until: free, for: .silentBudget)
    }
}
