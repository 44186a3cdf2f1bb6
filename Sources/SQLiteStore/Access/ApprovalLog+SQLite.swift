import GRDB
package import Model
import RelationalStore
package import Store

extension SQLiteFileStore {
    package func latestSignedRun(campaign: String) async throws -> Run? {
        try await read(.short) { db in
            try RunRow.first(
                db,
                """
                WHERE id IN (
                    SELECT run_id FROM approval
                    WHERE approval.campaign = :campaign AND EXISTS (
                        SELECT 1 FROM run AS made WHERE made.id = run_id AND made.state = :finished
                    ) AND EXISTS (SELECT 1 FROM event WHERE event.run_id = approval.run_id AND kind = :signed)
                ) ORDER BY id DESC LIMIT :limit
                """,
                [
                    "campaign": campaign, "finished": RunState.finished.rawValue,
                    "signed": EventKind.approvalUsed.rawValue,
                ])
        }
    }

    package func createApprovedRun(
        _ definition: RunDefinition, occurrence: String, now: Timestamp, by actor: Actor, notes: [EventNote],
        files: [String: String], demand: ApprovalDemand, volume: VolumeRequest?, limits: ReachLimits?
    ) async throws -> (run: Run, isNew: Bool) {
        let (text, path) = (try RunDefinitionText(definition), path)
        return try await writeDurably { db in
            let made = try Self.insertRun(
                db, definition.campaign, text, occurrence: occurrence, isTest: false, now: now, by: actor,
                notes: notes, files: files)
            guard made.isNew else { return made }
            let evidence = try ApprovalRows(SQLiteSession(db)).use(
                demand, run: made.run.id, in: path, now: now, by: actor)
            let held = ReachLimits.signed(limits, demand, evidence)
            return (try Self.weigh(db, made.run, volume, held, now: now, by: actor), true)
        }
    }
}
