import Foundation
import GRDB
import Model
import RelationalStore
import Store

/// The open leases of a run whose owner is gone: what they hold, and their end.
struct LeaseRecovery {
    private let db: Database
    private let run: Int64
    private let now: Timestamp

    init(_ db: Database, _ run: Int64, now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    func left() throws -> [LeftLease] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT id, owner, leased_at, environment, entries FROM lease
                WHERE run_id = :run ORDER BY id
                """, arguments: ["run": run])
        return try rows.map { row in
            let entries = LeaseEntry.unpack(Array(row[4] as Data))
            return LeftLease(
                id: row[0], owner: row[1], leasedAt: Timestamp(milliseconds: row[2]),
                environment: PushEnvironment(code: row[3]), deliveries: try entries.compactMap(waiting))
        }
    }

    /// Records what is known, makes pending again what nothing is known of, and removes the leases.
    func end(_ leases: [LeftLease], _ settlements: [Settlement]) throws -> DeliveryCounts {
        _ = try SettlementBatch(db, run: run, now: now).record(settlements)
        return try remove(leases) { .givenBack($0, of: $1) }
    }

    /// Nobody knows what became of what is in flight, and nothing more will be done about it.
    func closeAll() throws {
        _ = try remove(left()) { .lost($0, of: $1) }
    }

    private func remove(
        _ leases: [LeftLease], settling rest: (LeftLease.Delivery, LeftLease) -> Settlement
    ) throws -> DeliveryCounts {
        let batch = try SettlementBatch(db, run: run, now: now)
        for lease in leases {
            // One that has its outcome by now is left as it is.
            _ = try batch.record(lease.deliveries.map { rest($0, lease) })
            try db.cachedStatement(sql: "DELETE FROM lease WHERE id = :lease AND run_id = :run")
                .execute(arguments: ["lease": lease.id, "run": run])
        }
        return try RunRow.add(DeliveryCounts(), to: run, at: now, db)
    }

    /// Nil for a delivery that has the outcome of this lease.
    private func waiting(_ entry: LeaseEntry) throws -> LeftLease.Delivery? {
        let rows = try RowStatement(
            db,
            """
            SELECT attempt, excused, wave, stage FROM delivery
            WHERE run_id = :run AND device_id = :device AND state = \(DeliveryState.pending.rawValue)
                AND leases = :number - 1
            """)
        defer { rows.reset() }
        try rows.bind(run, rows.parameter(":run"))
        try rows.bind(entry.device, rows.parameter(":device"))
        try rows.bind(Int64(entry.number), rows.parameter(":number"))
        guard try rows.step() else { return nil }
        return LeftLease.Delivery(
            device: entry.device, generation: entry.generation, leaseNumber: entry.number,
            attempt: rows.int(0) + 1, excused: rows.int(1), wave: Timestamp(stored: rows.int64OrNil(2)),
            stage: rows.int64OrNil(3).map(Int.init))
    }
}
