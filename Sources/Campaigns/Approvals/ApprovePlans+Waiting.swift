package import Model
import Store

extension ApprovePlans {
    /// Returns the number of plans that wait for this person: open ones that still need a signature, and that the
    /// person may sign.
    ///
    /// - Parameter sees: whether the person may see an app's plans.
    package func waiting(
        for actor: Actor, now: Timestamp, sees: (_ topic: String) -> Bool
    ) async throws -> Int {
        let records = try await store.approvals(in: [.open], limit: Self.openMax)
        guard !records.isEmpty else { return 0 }
        let people = try await people()
        return records.count { record in
            let plan = result(record, people, now: now)
            return plan.missing > 0 && sees(plan.topic) && obstacle(to: actor, record, plan, people) == nil
        }
    }
}
