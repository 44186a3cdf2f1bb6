import Foundation
import GRDB
package import Store
package import Model

extension SQLiteFileStore {
    package func observation(now: Timestamp) async throws -> StoreObservation {
        let logBytes = try? FileManager.default.attributesOfItem(atPath: path + "-wal")[.size] as? Int
        return try await read { db in
            let states = try Row.fetchAll(
                db, sql: "SELECT state, count(*) FROM run WHERE is_test = 0 GROUP BY state")
            let runs = states.compactMap { row in RunState(rawValue: row[0]).map { ($0, row[1] as Int) } }
            let queues = try Row.fetchAll(
                db,
                sql: """
                    SELECT id, campaign, pending, leased,
                        (SELECT min(first) FROM (
                            SELECT (
                                SELECT min(not_before) FROM delivery INDEXED BY delivery_waiting
                                WHERE run_id = run.id AND environment = place.code AND state = 0
                                    AND not_before IS NOT NULL
                            ) AS first
                            FROM (SELECT 0 AS code UNION ALL SELECT 1) AS place
                        ))
                    FROM run WHERE state IN ('scheduled', 'running', 'paused') ORDER BY id
                    """
            ).map { row in
                let due = Timestamp(stored: row[4] as Int64?)
                return StoreObservation.Queue(
                    run: row[0], campaign: row[1], pending: row[2], leased: row[3],
                    overdue: due.map { $0 < now ? now - $0 : .zero } ?? .zero)
            }
            return StoreObservation(
                runs: Dictionary(uniqueKeysWithValues: runs), queues: queues, logBytes: (logBytes ?? nil) ?? 0)
        }
    }
}
