import Model
import Store
import RelationalStore

/// The background pushes to each device that were sent, or may have been.
struct SilentLedger {
    private let db: PostgresSession

    init(_ db: PostgresSession) {
        self.db = db
    }

    /// The pushes to some devices. Until the transaction ends, no other transaction can reserve budget for these
    /// devices.
    struct Standing {
        /// The time at which the devices were locked.
        let moment: Timestamp
        /// The time of each push's outcome, or `nil` for a push in flight. Only devices that are still stored are
        /// included.
        fileprivate(set) var ends: [Int64: [Timestamp?]] = [:]
        /// The latest reservation of each device.
        fileprivate(set) var latest: [Int64: Timestamp] = [:]

        /// Returns `false` if the device was merged or removed while this transaction waited for its slot.
        func isStored(_ device: Int64) -> Bool { ends[device] != nil }
    }

    /// Locks the devices and returns their pushes. Until the transaction ends, no other transaction reserves for them.
    /// The devices are locked first, in one order for all, and a later statement reads the ledger. Otherwise two
    /// senders could both take the last slot.
    ///
    /// Also deletes the rows that the budget no longer needs.
    func standing(
        of devices: [Int64], at now: Timestamp, _ budget: Configuration.SilentBudget, after steps: [ClockStep]
    ) throws -> Standing {
        var standing = Standing(moment: try hold(devices.sorted(), at: now))
        // Plan the statement each time. A plan that was made while the ledger was empty would read the whole ledger,
        // even after the ledger has grown.
        let rows = try db.rows(
            .once(
                """
                -- OFFSET keeps the join one look-up for each device: without statistics the planner reads the whole ledger.
                SELECT device.id, reserved.device_id IS NOT NULL, reserved.settled_at, reserved.reserved_at
                FROM device LEFT JOIN LATERAL (
                    SELECT device_id, settled_at, reserved_at FROM silent_ledger
                    WHERE silent_ledger.device_id = device.id OFFSET 0
                ) AS reserved ON true
                WHERE device.id = ANY ($1)
                """), devices)
        for row in rows {
            let device = try row.int64(0)
            guard try row.bool(1) else {
                standing.ends[device] = []
                continue
            }
            standing.ends[device, default: []].append(try row.timestampOrNil(2))
            standing.latest[device] = try max(standing.latest[device] ?? row.timestamp(3), row.timestamp(3))
        }
        let past = RollingWindow(budget, at: standing.moment, after: steps).forgottenUpTo
        let isOld = standing.ends.values.contains { $0.contains { $0.map { $0 <= past } ?? false } }
        if isOld {
            try db.execute("DELETE FROM silent_ledger WHERE device_id = ANY ($1) AND settled_at <= $2", devices, past)
        }
        return standing
    }

    /// Locks the slots of these devices, which are in order. Until the transaction ends, no other transaction
    /// reserves for them. Returns the time from which they are locked.
    @discardableResult
    func hold(_ devices: [Int64], at now: Timestamp) throws -> Timestamp {
        try db.execute(
            "INSERT INTO silent_slot (device_id) SELECT unnest($1::bigint[]) ON CONFLICT DO NOTHING", devices)
        // The count makes the query lock all rows before it reads the clock.
        return try db.first(
            """
            WITH held AS MATERIALIZED (
                SELECT device_id FROM silent_slot WHERE device_id = ANY ($1) ORDER BY device_id FOR NO KEY UPDATE
            )
            SELECT count(*), coalesce($2::bigint, \(StoreTime.now)) FROM held
            """, devices, db.given(now)
        ) { try $0.timestamp(1) } ?? now
    }

    /// Reserves a slot of the budget for this lease of each delivery. A reservation is never earlier than another
    /// one of the same device, because the clock of a server that takes over may be behind.
    func reserve(_ deliveries: [LeasedDelivery], run: Int64, at now: Timestamp, _ standing: Standing) throws {
        guard !deliveries.isEmpty else { return }
        let moments = deliveries.map { delivery in
            db.time == .database ? max(now, standing.latest[delivery.device] ?? now) : now
        }
        try db.execute(
            """
            INSERT INTO silent_ledger (device_id, run_id, lease_number, reserved_at, settled_at)
            SELECT device, $4, number, moment, NULL
            FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS given (device, number, moment)
            """, deliveries.map(\.device), deliveries.map(\.leaseNumber), moments, run)
    }

    /// Records that the outcome is known, or was lost. The push has certainly ended by `now`, or by the time of this
    /// statement if the server's clock counts.
    func close(_ leases: [(device: Int64, number: Int)], run: Int64, at now: Timestamp) throws {
        guard !leases.isEmpty else { return }
        try db.execute(
            """
            UPDATE silent_ledger SET settled_at = CASE
                WHEN $4::bigint IS NULL THEN greatest(settled_at, reserved_at, \(StoreTime.now))
                ELSE greatest(settled_at, $4)
            END
            FROM unnest($1::bigint[], $2::bigint[]) AS given (device, number)
            WHERE device_id = given.device AND run_id = $3 AND lease_number = given.number
            """, leases.map(\.device), leases.map(\.number), run, db.given(now))
    }

    /// Deletes the reservations of pushes that certainly never reached APNs.
    func releaseSlots(_ leases: [(device: Int64, number: Int)], run: Int64) throws {
        guard !leases.isEmpty else { return }
        try db.execute(
            """
            DELETE FROM silent_ledger USING unnest($1::bigint[], $2::bigint[]) AS given (device, number)
            WHERE device_id = given.device AND run_id = $3 AND lease_number = given.number
            """, leases.map(\.device), leases.map(\.number), run)
    }
}
