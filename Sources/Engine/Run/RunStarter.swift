package import Model
package import Storage

/// Creates a run, or finds the one an occurrence already has.
package struct RunStarter: Sendable {
    private let store: Store

    package init(store: Store) {
        self.store = store
    }

    /// Throws ``GuardRefusal`` before anything is written. An occurrence that already has a run gets that run, as it
    /// was frozen then, whatever the files say now.
    package func start(
        _ definition: RunDefinition, occurrence: String, by actor: String, now: Timestamp
    ) async throws -> (run: Run, isNew: Bool) {
        let campaign = definition.campaign
        if let known = try await store.run(campaign: campaign.name, occurrence: occurrence) { return (known, false) }
        let guards = campaign.guards
        if guards.maxReach != nil || guards.minReach != nil {
            let reach = try await store.reach(
                of: campaign.audience.expression, topic: campaign.topic, pushType: campaign.pushType, now: now)
            if let refusal = GuardRefusal.check(guards, reach: reach.total).first { throw refusal }
        }
        return try await store.createRun(definition, occurrence: occurrence, now: now, by: actor)
    }
}
