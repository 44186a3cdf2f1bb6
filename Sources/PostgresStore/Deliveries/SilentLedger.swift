import Model
import Store

/// The background pushes of each device that left, or may have.
struct SilentLedger {
    private let db: PostgresSession

    init(_ db: PostgresSession) {
        self.db = db
    }

    /// When the outcome of each of the devices' pushes came; nil for one in flight. From here to the end of the transaction
    /// nobody else reserves for them: counting what others may add meanwhile would let two senders take the last slot
    /// both, so that the devices are locked first, in one order for all, and the ledger read by a statement after that.
    ///
    /// What the budget can forget is deleted on the way.
    func ends(
        of devices: [Int64], at now: Timestamp, _ budget: Configuration.SilentBudget, after steps: [ClockStep]
    ) throws -> [Int64: [Timestamp?]] {
        try hold(devices.sorted())
        var ends: [Int64: [Timestamp?]] = [:]
        let rows = try db.rows("SELECT device_id, settled_at FROM silent_ledger WHERE device_id = ANY ($1)", devices)
        for row in rows { ends[try row.int64(0), default: []].append(try row.timestampOrNil(1)) }
        let past = SilentWindow(budget, at: now, after: steps).forgottenUpTo
        let isOld = ends.values.contains { $0.contains { $0.map { $0 <= past } ?? false } }
        if isOld {
            try db.execute("DELETE FROM silent_ledger WHERE device_id = ANY ($1) AND settled_at <= $2", devices, past)
        }
        return ends
    }

    /// Until the transaction ends nobody else reserves for these devices, which are in order.
    func hold(_ devices: [Int64]) throws {
        try db.execute(
            "INSERT INTO silent_slot (device_id) SELECT unnest($1::bigint[]) ON CONFLICT DO NOTHING", devices)
        try db.execute(
            """
            SELECT device_id FROM silent_slot WHERE device_id = ANY ($1) ORDER BY device_id FOR NO KEY UPDATE
            """, devices)
    }

    /// Takes a slot of the budget for this lease of each delivery.
    func reserve(_ deliveries: [LeasedDelivery], run: Int64, at now: Timestamp) throws {
        guard !deliveries.isEmpty else { return }
        try db.execute(
            """
            INSERT INTO silent_ledger (device_id, run_id, lease_number, reserved_at, settled_at)
            SELECT device, $3, number, $4, NULL FROM unnest($1::bigint[], $2::bigint[]) AS given (device, number)
            """, deliveries.map(\.device), deliveries.map(\.leaseNumber), run, now)
    }

    /// The outcome is known, or was lost: from `now` on the push is certainly in the past.
    func close(_ leases: [(device: Int64, number: Int)], run: Int64, at now: Timestamp) throws {
        guard !leases.isEmpty else { return }
        try db.execute(
            """
            UPDATE silent_ledger SET settled_at = greatest(coalesce(settled_at, $4), $4)
            FROM unnest($1::bigint[], $2::bigint[]) AS given (device, number)
            WHERE device_id = given.device AND run_id = $3 AND lease_number = given.number
            """, leases.map(\.device), leases.map(\.number), run, now)
    }

    /// The push certainly never reached APNs.
    func giveBack(_ leases: [(device: Int64, number: Int)], run: Int64) throws {
        guard !leases.isEmpty else { return }
        try db.execute(
            """
            DELETE FROM silent_ledger USING unnest($1::bigint[], $2::bigint[]) AS given (device, number)
            WHERE device_id = given.device AND run_id = $3 AND lease_number = given.number
            """, leases.map(\.device), leases.map(\.number), run)
    }
}
