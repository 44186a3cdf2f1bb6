package import Model
package import Store
package import Campaigns
import Sending

/// Makes a run of each occurrence that is due, once: whoever else looks at the same schedule finds it there.
package struct DueRuns: Sendable {
    package enum Made: Hashable, Sendable {
        case run(Run)
        /// Not sent, and why: on record as a run that is missed or failed.
        case ended(RunState, reason: String)
    }

    private let store: any AllRoles
    /// Who is on record as having made them.
    private let actor: Actor

    package init(store: any AllRoles, actor: Actor) {
        self.store = store
        self.actor = actor
    }

    /// In the order given; occurrences that have a run already are left out.
    package func make(_ due: [Agenda.Due], now: Timestamp) async throws -> [(due: Agenda.Due, made: Made)] {
        var keys: [String: [String]] = [:]
        for entry in due { keys[entry.campaign.campaign.name, default: []].append(entry.occurrence.key) }
        var known: [String: Set<String>] = [:]
        for (campaign, keys) in keys { known[campaign] = try await store.knownOccurrences(of: campaign, among: keys) }
        var result: [(due: Agenda.Due, made: Made)] = []
        for entry in due where known[entry.campaign.campaign.name]?.contains(entry.occurrence.key) != true {
            if let made = try await make(entry, now: now) { result.append((entry, made)) }
        }
        return result
    }

    private func make(_ due: Agenda.Due, now: Timestamp) async throws -> Made? {
        let occurrence = due.occurrence
        do {
            let definition = try due.campaign.definition(for: occurrence)
            guard now <= occurrence.missedAfter else {
                return try await end(definition, occurrence, .missed, occurrence.lateness(at: now), now)
            }
            do {
                _ = try VariantRenderers(definition)
                let (run, isNew) = try await StartRun(store: store)
                    .start(definition, occurrence: occurrence.key, by: actor, now: now)
                return isNew ? .run(run) : nil
            } catch let error as PayloadRenderer.RenderError {
                return try await end(definition, occurrence, .failed, error.description, now)
            } catch let error as GuardRefusal {
                return try await end(definition, occurrence, .failed, error.description, now)
            }
        }
    }

    private func end(
        _ definition: RunDefinition, _ occurrence: Occurrence, _ state: RunState, _ reason: String, _ now: Timestamp
    ) async throws -> Made? {
        let isNew = try await store.createEndedRun(
            definition, occurrence: occurrence.key, state: state, reason: reason, now: now, by: actor)
        return isNew ? .ended(state, reason: reason) : nil
    }
}
