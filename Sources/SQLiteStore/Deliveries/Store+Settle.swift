import GRDB
import Store
package import Model

extension SQLiteFileStore {
    /// Records outcomes, in one transaction, and returns the run's account. An outcome counts once: a second one for
    /// the same attempt, or one that comes after its lease was recovered, changes nothing but the silent ledger, which
    /// takes the later time.
    ///
    /// A device found gone is marked only while its token is the one sent to and was not registered after the time
    /// APNs gave (`apns-protocol.md` section 7).
    package func settle(run: Int64, _ settlements: [Settlement], now: Timestamp) async throws -> DeliveryCounts {
        try await write { db in
            let batch = try SettlementBatch(db, run: run, now: now)
            return try batch.record(settlements)
        }
    }

    /// Suspends the devices of one environment whose tokens APNs called bad or of another topic in this run, where the
    /// token is still the one sent to and was not registered since. For a run known healthy only: with the wrong host or
    /// topic every token draws these answers. Returns how many.
    package func suspendMismatched(
        run: Int64, _ environment: PushEnvironment, now: Timestamp
    ) async throws -> Int {
        try await write { db in
            try db.execute(
                sql: """
                    UPDATE device SET status = 1, status_reason = delivery.reason, status_at = :now
                    FROM delivery
                    WHERE delivery.run_id = :run AND delivery.state = 2 AND delivery.environment = :environment
                        AND delivery.reason IN ('BadDeviceToken', 'DeviceTokenNotForTopic')
                        AND device.id = delivery.device_id AND device.status = 0
                        AND device.token_generation = delivery.generation
                        AND (device.registered_at IS NULL OR device.registered_at <= delivery.changed_at)
                    """, arguments: ["run": run, "now": now.milliseconds, "environment": environment.code])
            let count = db.changesCount
            try db.execute(
                sql: "UPDATE run SET devices_suspended = devices_suspended + :count WHERE id = :run",
                arguments: ["run": run, "count": count])
            return count
        }
    }
}
