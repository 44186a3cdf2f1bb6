import GRDB
package import Model
import RelationalStore
import Store

extension SQLiteFileStore {
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
