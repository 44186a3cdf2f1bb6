package import Model
import Store

extension ApprovePlans {
    /// Returns the number of plans that wait for this person: open ones that still need a signature, that the person
    /// did not write, and that the person has not signed.
    ///
    /// - Parameter sees: whether the person may see an app's plans.
    package func waiting(
        for actor: Actor, now: Timestamp, sees: (_ topic: String) -> Bool
    ) async throws -> Int {
        let plans = try await list(includingPast: false, isCompared: false, now: now).approvals
        guard !plans.isEmpty else { return 0 }
        let person = try await people().person(actor.identity)
        return plans.count { plan in
            plan.missing > 0 && sees(plan.topic) && !plan.authors.contains(person)
                && !plan.signatures.contains { $0.person == person }
        }
    }
}
