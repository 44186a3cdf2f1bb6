package import Model
import RelationalStore
package import Store

extension PostgresDatabase {
    package func latestSignedRun(campaign: String) async throws -> Run? {
        try await read(.short) { db in
            try RunRow.first(
                db,
                """
                WHERE id IN (
                    SELECT approval.run_id FROM approval JOIN run AS made ON made.id = approval.run_id
                    WHERE approval.campaign = $1 AND made.state = $2
                        AND EXISTS (SELECT 1 FROM event WHERE event.run_id = approval.run_id AND kind = $3)
                ) ORDER BY id DESC LIMIT $4
                """, campaign, RunState.finished.rawValue, EventKind.approvalUsed.rawValue)
        }
    }

    package func createApprovedRun(
        _ definition: RunDefinition, occurrence: String, now: Timestamp, by actor: Actor, notes: [EventNote],
        files: [String: String], demand: ApprovalDemand, volume: VolumeRequest?, limits: ReachLimits?
    ) async throws -> (run: Run, isNew: Bool) {
        let (text, path) = (try RunDefinitionText(definition), path)
        return try await write(.durable) { db in
            let made = try Self.insertRun(
                db, definition.campaign, text, occurrence: occurrence, isTest: false, now: now, by: actor,
                notes: notes, files: files)
            guard made.isNew else { return made }
            let evidence = try ApprovalRows(db).use(
                demand, run: made.run.id, in: path, now: now, by: actor)
            let held = ReachLimits.signed(limits, demand, evidence)
            return (try Self.weigh(db, made.run, volume, held, now: now, by: actor), true)
        }
    }
}
