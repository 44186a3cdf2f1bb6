import GRDB
package import Store
package import Model

extension SQLiteFileStore {
    /// Reads all deliveries of the run.
    package func mismatchCounts(run: Int64) async throws -> [MismatchCount] {
        try await read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT environment, count(*),
                        count(*) FILTER (WHERE reason IN ('BadDeviceToken', 'DeviceTokenNotForTopic'))
                    FROM delivery WHERE run_id = :run AND state IN (1, 2)
                    GROUP BY environment
                    """, arguments: ["run": run]
            ).map { MismatchCount(environment: PushEnvironment(code: $0[0]), all: $0[1], wrong: $0[2]) }
        }
    }

    /// Makes the deliveries of one environment pending again that APNs refused as of another environment or topic: for a
    /// run stopped because not they were wrong, but we. Otherwise nobody refused so would ever hear of the campaign,
    /// once the host or the topic is put right. Returns how many.
    package func reopenMismatched(
        run: Int64, _ environment: PushEnvironment, owner: String, now: Timestamp
    ) async throws -> Int {
        try await write { db in
            try RunLock(db, run).require(owner)
            try db.execute(
                sql: """
                    UPDATE delivery SET state = 0, not_before = NULL, changed_at = :now
                    WHERE run_id = :run AND environment = :environment AND state = 2
                        AND reason IN ('BadDeviceToken', 'DeviceTokenNotForTopic')
                    """, arguments: ["run": run, "environment": environment.code, "now": now.milliseconds])
            var change = DeliveryCounts()
            change.rejected = -db.changesCount
            change.pending = db.changesCount
            try RunRow.add(change, to: run, db)
            return change.pending
        }
    }
}
