package import Model
package import Store

/// Creates a run, or finds the one an occurrence already has.
package struct RunStarter: Sendable {
    private let store: any RunLog & DeviceRegistry & OutcomeReader

    package init(store: any RunLog & DeviceRegistry & OutcomeReader) {
        self.store = store
    }

    /// Throws ``PlanDrift`` or ``GuardRefusal`` before anything is written. An occurrence that already has a run gets
    /// that run, as it was frozen then, whatever the files say now.
    ///
    /// - Parameters:
    ///   - plan: what was shown to a person, to be held to.
    ///   - overriding: guards that somebody decided to pass over; each that would have refused is put on record.
    ///   - files: SHA-256 in hex of the files the definition was read from, by path, for the record.
    package func start(
        _ definition: RunDefinition, occurrence: String, by actor: Actor, now: Timestamp, plan: PlanToken? = nil,
        overriding: Set<GuardName> = [], files: [String: String] = [:]
    ) async throws -> (run: Run, isNew: Bool) {
        let campaign = definition.campaign
        if let known = try await store.run(campaign: campaign.name, occurrence: occurrence) {
            // Its audience is frozen; the rest is as it was when it was created.
            if let plan,
                let drift = PlanDrift(
                    from: plan, to: try PlanToken(known.definition, reach: plan.reach), known.definition.campaign)
            {
                throw drift
            }
            return (known, false)
        }
        let refusals = try await check(definition, plan: plan, now: now)
        if let refusal = refusals.first(where: { !overriding.contains($0.name) }) { throw refusal }
        return try await store.createRun(
            definition, occurrence: occurrence, now: now, by: actor,
            notes: refusals.map {
                EventNote(kind: .guardOverridden, detail: "\($0.name.rawValue): \($0.facts)")
            }, files: files)
    }

    private func check(
        _ definition: RunDefinition, plan: PlanToken?, now: Timestamp
    ) async throws -> [GuardRefusal] {
        let campaign = definition.campaign
        guard plan != nil || campaign.guards != Campaign.Guards() else { return [] }
        let waves = RecipientWaves(definition, startedAt: now)
        let reach = try await store.reach(of: campaign, budget: nil, waves: waves, now: now).total
        if let plan, let drift = PlanDrift(from: plan, to: try PlanToken(definition, reach: reach), campaign) {
            throw drift
        }
        let previous =
            campaign.guards.maxGrowthPercent == nil
            ? nil : try await PreviousRun.find(campaign: campaign.name, in: store)
        return GuardRefusal.check(campaign.guards, reach: reach, previous: previous)
    }
}
