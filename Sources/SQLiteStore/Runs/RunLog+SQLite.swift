import GRDB
package import Model
import RelationalStore
import Store

extension SQLiteFileStore {
    package func createTestRun(
        _ definition: RunDefinition, occurrence: String, device: Int64, variant: Int?, now: Timestamp,
        by actor: Actor
    ) async throws -> Run {
        let text = try RunDefinitionText(definition)
        let campaign = definition.campaign
        return try await write { db in
            let made = try RunRow.insert(campaign, text, occurrence: occurrence, isTest: true, now: now, db)
            guard let run = made else {
                let run = try RunRow.find(db, campaign: campaign.name, occurrence: occurrence)
                throw StoreError.occurrenceTaken(campaign: campaign.name, occurrence: occurrence, run: run?.id ?? 0)
            }
            let batch = try FreezeSource.entry(ofDevice: device, campaign, variant: variant, db)
            _ = try FreezeBatch(db, run: run, now: now).insert(batch, isLast: true)
            try db.record(.runCreated, run: run, by: actor, "test of device \(device)", now: now)
            return try RunRow.require(db, run)
        }
    }

    package func openRuns(for owner: String, inHand: Set<Int64>) async throws -> [Run] {
        let isAlive = isAlive
        return try await read(.short) { db in
            let rows = try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT id, owner FROM run WHERE state IN (\(SQLConstants.list(RunState.open)))
                            AND (is_test = 0 OR occurrence GLOB '\(TestOccurrence.handedOverPrefix)*')
                        UNION ALL
                        SELECT id, owner FROM run WHERE state = '\(RunState.paused.rawValue)' AND paused_by IS NULL
                            AND is_test = 0 AND halt IN (\(SQLConstants.list(RunHalt.automatic.map(\.rawValue))))
                        ORDER BY id
                        """))
            return try rows.compactMap { row in
                let (id, holder): (Int64, String?) = (row[0], row[1])
                let isTaken = holder.map { $0 != owner && isAlive($0) } ?? false
                return inHand.contains(id) || isTaken ? nil : try RunRow.list(db, "WHERE id = $1", id).first
            }.readable
        }
    }
}
