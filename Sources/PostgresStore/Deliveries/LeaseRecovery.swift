import Model
import Store
import RelationalStore

/// The open leases of a run whose owner is gone: what they hold, and their end.
struct LeaseRecovery {
    private let db: PostgresSession
    private let run: Int64
    private let now: Timestamp

    init(_ db: PostgresSession, _ run: Int64, now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    /// - Parameter calls: nil: all leases of the run.
    func left(calls: [Int64]? = nil) throws -> [LeftLease] {
        try db.all(
            """
            SELECT id, owner, leased_at, environment, entries FROM lease
            WHERE run_id = $1 AND ($2::bigint[] IS NULL OR call_id = ANY ($2)) ORDER BY id
            """, run, calls
        ) { row in
            LeftLease(
                id: try row.int64(0), owner: try row.text(1), leasedAt: try row.timestamp(2),
                environment: PushEnvironment(code: try row.int64(3)),
                deliveries: try waiting(LeaseEntry.unpack(try row.bytes(4))))
        }
    }

    /// Records what is known, makes pending again what nothing is known of, and removes the leases.
    func end(_ leases: [LeftLease], _ settlements: [Settlement]) throws -> DeliveryCounts {
        var batch = SettlementBatch(db, run: run, now: now)
        _ = try batch.record(settlements.map { dueAtOnce($0, of: leases) })
        return try remove(leases) { .givenBack($0, of: $1) }
    }

    /// Nobody knows what became of what is in flight, and nothing more will be done about it.
    func closeAll() throws {
        _ = try remove(left()) { .lost($0, of: $1) }
    }

    private func remove(
        _ leases: [LeftLease], settling rest: (LeftLease.Delivery, LeftLease) -> Settlement
    ) throws -> DeliveryCounts {
        // One that has its outcome by now is left as it is.
        let settlements = leases.flatMap { lease in lease.deliveries.map { dueAtOnce(rest($0, lease), of: leases) } }
        var batch = SettlementBatch(db, run: run, now: now)
        let counts = try batch.record(settlements)
        try db.execute("DELETE FROM lease WHERE run_id = $1 AND id = ANY ($2)", run, leases.map(\.id))
        return counts
    }

    /// What is due since it was leased is so by the store's clock, with which the caller's has nothing to do.
    private func dueAtOnce(_ settlement: Settlement, of leases: [LeftLease]) -> Settlement {
        guard db.time == .database, case .retry(let due) = settlement.verdict,
            leases.contains(where: { $0.id == settlement.lease && $0.leasedAt == due })
        else { return settlement }
        var settlement = settlement
        settlement.verdict = .retry(notBefore: now)
        return settlement
    }

    /// Without those that have the outcome of this lease.
    private func waiting(_ entries: [LeaseEntry]) throws -> [LeftLease.Delivery] {
        let rows = try db.rows(
            """
            SELECT device_id, leases, attempt, excused, wave, stage FROM \(DeliveryTable(run: run).name)
            WHERE device_id = ANY ($1) AND state = \(DeliveryState.pending.code)
            """, entries.map(\.device))
        var found: [Int64: PostgresRow] = [:]
        for row in rows { found[try row.int64(0)] = row }
        return try entries.compactMap { entry in
            guard let row = found[entry.device], try row.int(1) == entry.number - 1 else { return nil }
            return LeftLease.Delivery(
                device: entry.device, generation: entry.generation, leaseNumber: entry.number,
                attempt: try row.int(2) + 1, excused: try row.int(3), wave: try row.timestampOrNil(4),
                stage: try row.intOrNil(5))
        }
    }
}
