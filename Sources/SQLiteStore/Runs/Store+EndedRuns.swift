import GRDB
import Store
package import Model

extension SQLiteFileStore {
    /// Puts an occurrence on record that will not be sent: a run in a final state, made so in one transaction. False
    /// when the occurrence has a run already; then nothing is changed.
    package func createEndedRun(
        _ definition: RunDefinition, occurrence: String, state: RunState, reason: String, now: Timestamp,
        by actor: Actor
    ) async throws -> Bool {
        let text = try RunDefinitionText(definition)
        return try await write { db in
            guard
                try RunRow.insert(definition.campaign, text, occurrence: occurrence, isTest: false, now: now, db)
            else { return false }
            try RunEnding(db, db.lastInsertedRowID, now: now).enter(state, reason: reason, actor: actor)
            return true
        }
    }
}
