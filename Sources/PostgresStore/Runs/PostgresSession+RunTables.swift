package import Model
import RelationalStore
package import Store

/// The parts of a run that only PostgreSQL has: the table of its deliveries, and the rows that several senders
/// change. These rows are locked in the order of <doc:LockOrder>.
extension PostgresSession {
    package func makeDeliveries(of run: Int64) throws { try DeliveryTable(run: run).make(self) }

    package func hasDeliveries(of run: Int64) throws -> Bool { try DeliveryTable(run: run).isThere(self) }

    package func hasFailedIndex(of run: Int64) throws -> Bool { try DeliveryTable(run: run).hasFailedIndex(self) }

    package func ended(run: Int64) throws { try execute("DELETE FROM chunk WHERE run_id = $1", run) }

    package func lockWork(of run: Int64) throws {
        try execute("SELECT 1 FROM run_sender WHERE run_id = $1 ORDER BY owner FOR UPDATE", run)
        try execute("SELECT 1 FROM lease WHERE run_id = $1 ORDER BY id FOR NO KEY UPDATE", run)
        try execute("SELECT 1 FROM run_stage WHERE run_id = $1 ORDER BY stage FOR NO KEY UPDATE", run)
    }

    package func senders(of run: Int64) throws -> [String] {
        try all("SELECT owner FROM run_sender WHERE run_id = $1", run) { try $0.text(0) }
    }

    /// Returns whether the sender may lease, and locks its row in `run_sender`. This row is separate from the run's
    /// row, so that a lease can lock it while other transactions settle.
    package func isSender(_ owner: String, of run: Int64) throws -> Bool {
        try execute("SELECT 1 FROM run_sender WHERE run_id = $1 AND owner = $2 FOR SHARE", run, owner) > 0
    }

    package func join(_ sender: String, to run: Int64, _ isAlive: OwnerLiveness.IsAlive) throws {
        // Keep the rows of living senders: a lease in flight must still find its row.
        let gone = try senders(of: run).filter { $0 != sender && !isAlive($0) }
        try execute("DELETE FROM run_sender WHERE run_id = $1 AND owner = ANY ($2)", run, gone)
        try execute("INSERT INTO run_sender (run_id, owner) VALUES ($1, $2) ON CONFLICT DO NOTHING", run, sender)
    }

    package func leave(_ run: Int64, _ owner: String?) throws {
        try execute("DELETE FROM run_sender WHERE run_id = $1 AND ($2::text IS NULL OR owner = $2)", run, owner)
    }

    package func replaceHolds(of run: Int64, by owner: String, _ holds: [EndpointHold]) throws {
        try execute(
            """
            DELETE FROM endpoint_hold
            WHERE run_id = $1 AND (owner = $2 OR owner NOT IN (SELECT owner FROM run_sender WHERE run_id = $1))
            """, run, owner)
        for hold in holds {
            try execute(
                """
                INSERT INTO endpoint_hold (run_id, owner, environment, endpoint, status, since, next_try_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7)
                """, run, owner, hold.environment.code, hold.endpoint, hold.status, hold.since, hold.nextTryAt)
        }
    }

    package func freeze(_ chosen: ChosenDevice, run: Int64, now: Timestamp) throws {
        try FreezeBatch(self, run: run, now: now).insert(FrozenDeliveries(chosen))
    }

    package func keepingNoLocks<Value>(_ body: () throws -> Value) throws -> Value {
        try run("SAVEPOINT reading")
        let value = try body()
        // The locks that were taken after a savepoint end with it. The snapshot stays the same.
        try run("ROLLBACK TO SAVEPOINT reading; RELEASE SAVEPOINT reading")
        return value
    }

    package func settle(_ settlements: [Settlement], run: Int64, now: Timestamp) throws -> DeliveryCounts {
        var batch = SettlementBatch(self, run: run, now: now)
        return try batch.record(settlements)
    }
}

extension RunStages<PostgresSession> {
    /// Locks the stages for a lease. Locks nothing once the last stage has begun, because a lease then changes no
    /// stage.
    static func lockUnlessOver(_ db: PostgresSession, run: Int64) throws {
        let isOver = try db.first(
            "SELECT opened_at IS NOT NULL FROM run_stage WHERE run_id = $1 ORDER BY stage DESC LIMIT 1", run
        ) { try $0.bool(0) }
        if isOver == false { try lock(db, run: run) }
    }
}
