import Model
import Store
import Sending
import Campaigns

/// Makes the run of one new item.
struct FeedRunStarter {
    enum Made {
        case run(Run)
        /// On record as failed, with the reason.
        case refused(String)
        /// Somebody was faster.
        case known
    }

    let store: any AllRoles
    let definition: RunDefinition
    let actor: Actor
    let now: Timestamp

    func start(_ occurrence: String, _ values: [String: String]) async throws -> Made {
        do {
            let definition = try filled(values)
            _ = try VariantRenderers(definition)
            let (run, isNew) = try await StartRun(store: store)
                .start(definition, occurrence: occurrence, by: actor, now: now)
            // One that is there and not over was made by a poll that did not get as far as its record.
            return isNew || run.state == .scheduled ? .run(run) : .known
        } catch let error as GuardRefusal {
            return try await refuse(occurrence, values, error.description)
        } catch let error as PayloadRenderer.RenderError {
            return try await refuse(occurrence, values, error.description)
        }
    }

    /// Puts an item on record that is not sent; false when it was there.
    func end(
        _ occurrence: String, _ values: [String: String], _ state: RunState, _ reason: String
    ) async throws -> Bool {
        try await store.createEndedRun(
            try filled(values), occurrence: occurrence, state: state, reason: reason, now: now, by: actor)
    }

    private func refuse(_ occurrence: String, _ values: [String: String], _ reason: String) async throws -> Made {
        try await end(occurrence, values, .failed, reason) ? .refused(reason) : .known
    }

    private func filled(_ values: [String: String]) throws -> RunDefinition {
        var definition = definition
        definition.variables = try RunVariables.merged(definition.campaign, with: values)
        definition.plannedAt = now
        return definition
    }
}
