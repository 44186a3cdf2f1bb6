package import Model
package import Store

/// The recovery of the open leases of a run whose owner is dead: their contents, and their end.
package struct LeaseRecovery<Session: SQLSession> {
    private let db: Session
    private let run: Int64
    private let now: Timestamp

    package init(_ db: Session, _ run: Int64, now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    /// Returns the open leases.
    ///
    /// - Parameter condition: a condition on `lease`. `value` is the value for its `$2`.
    package func left(where condition: String? = nil, _ value: (any SQLValue)? = nil) throws -> [AbandonedLease] {
        try db.all(
            """
            SELECT id, owner, leased_at, environment, entries FROM lease
            WHERE run_id = $1\(condition.map { " AND \($0)" } ?? "") ORDER BY id
            """, values: [run] + [value].compactMap(\.self)
        ) { row in
            (
                AbandonedLease(
                    id: try row.int64(0), owner: try row.text(1), leasedAt: try row.timestamp(2),
                    environment: PushEnvironment(code: try row.int64(3)), deliveries: []),
                LeaseEntry.unpack(try row.bytes(4))
            )
        }.map { found, entries in
            var lease = found
            lease.deliveries = try waiting(entries)
            return lease
        }
    }

    /// Returns the entries that have no outcome of this lease yet.
    private func waiting(_ entries: [LeaseEntry]) throws -> [AbandonedLease.Delivery] {
        let rows = try db.all(
            .once(
                """
                SELECT device_id, leases, attempt, excused, wave, stage FROM \(Session.dialect.deliveries(of: run))
                WHERE \(Session.dialect.isOf(run: run)) AND device_id \(Session.dialect.isAny(1))
                    AND state = \(DeliveryState.pending.code)
                """), values: [entries.map(\.device)]
        ) { row in
            (
                device: try row.int64(0), leases: try row.int(1), attempt: try row.int(2), excused: try row.int(3),
                wave: try row.timestampOrNil(4), stage: try row.intOrNil(5)
            )
        }
        let found = Dictionary(rows.map { ($0.device, $0) }) { first, _ in first }
        return entries.compactMap { entry in
            guard let row = found[entry.device], row.leases == entry.number - 1 else { return nil }
            return AbandonedLease.Delivery(
                device: entry.device, generation: entry.generation, leaseNumber: entry.number,
                attempt: row.attempt + 1, excused: row.excused, wave: row.wave, stage: row.stage)
        }
    }

    /// Records the known outcomes, makes the other deliveries pending again, and removes the leases.
    package func endLeases(_ leases: [AbandonedLease], _ settlements: [Settlement]) throws -> DeliveryCounts {
        _ = try db.settle(settlements.map { dueAtOnce($0, of: leases) }, run: run, now: now)
        return try remove(leases) { .released($0, of: $1) }
    }

    /// Settles all deliveries in flight as unknown.
    func closeAll() throws {
        _ = try remove(left()) { .lost($0, of: $1) }
    }

    private func remove(
        _ leases: [AbandonedLease], settling rest: (AbandonedLease.Delivery, AbandonedLease) -> Settlement
    ) throws -> DeliveryCounts {
        // A delivery that already has its outcome is not changed.
        let settlements = leases.flatMap { lease in lease.deliveries.map { dueAtOnce(rest($0, lease), of: leases) } }
        let counts = try db.settle(settlements, run: run, now: now)
        try db.execute(
            "DELETE FROM lease WHERE run_id = $1 AND id \(Session.dialect.isAny(2))", run, leases.map(\.id))
        return counts
    }

    /// If a retry is due at the time of its lease, makes it due now by the store's clock. The lease's time may come
    /// from another clock.
    private func dueAtOnce(_ settlement: Settlement, of leases: [AbandonedLease]) -> Settlement {
        guard !db.goesByCallersClock, case .retry(let due) = settlement.verdict,
            leases.contains(where: { $0.id == settlement.lease && $0.leasedAt == due })
        else { return settlement }
        var settlement = settlement
        settlement.verdict = .retry(notBefore: now)
        return settlement
    }
}

extension SQLSession {
    /// Settles all deliveries in flight as unknown: their outcomes are lost and are not retried.
    package func closeLeases(of run: Int64, now: Timestamp) throws { try LeaseRecovery(self, run, now: now).closeAll() }

    /// Returns each lease with its deliveries that have no outcome.
    package func abandonedLeases(of run: Int64) throws -> [AbandonedLease] {
        try LeaseRecovery(self, run, now: Timestamp(milliseconds: 0)).left()
    }
}
