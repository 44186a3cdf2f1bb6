import Model
import Store
import RelationalStore

/// Merges two stored devices that turn out to be one installation. The kept device inherits the tags, segments,
/// frequency caps and silent budget of the deleted device.
struct DeviceMerge {
    private let db: PostgresSession
    private let now: Timestamp

    init(_ db: PostgresSession, now: Timestamp) {
        self.db = db
        self.now = now
    }

    /// Deletes `gone`. Its deliveries stay, and are suppressed when a lease reads them. Its silent ledger stays too,
    /// because the outcomes of its deliveries in flight are recorded there.
    func absorb(_ gone: Int64, into kept: Int64) throws {
        let deletion = DeviceDeletion(db)
        let moment = try deletion.begin([gone, kept], at: now)
        try inheritCaps(of: gone, by: kept)
        try DeviceRows(db).hold([gone, kept].sorted())
        try db.execute(
            """
            INSERT INTO tag (device_id, name) SELECT $2, name FROM tag WHERE device_id = $1 ON CONFLICT DO NOTHING
            """, gone, kept)
        try db.execute(
            """
            WITH joined AS (
                INSERT INTO segment_member (segment_id, device_id)
                SELECT segment_id, $2 FROM segment_member WHERE device_id = $1
                ON CONFLICT DO NOTHING RETURNING segment_id
            )
            UPDATE segment SET members = members + 1 FROM joined WHERE segment.id = joined.segment_id
            """, gone, kept)
        try inheritLedger(of: gone, by: kept, at: moment)
        try db.inheritFeedback(of: gone, by: kept)
        try deletion.delete([gone])
    }

    /// Copies the pushes that caps count. Call it before any device is locked, as in a lease.
    private func inheritCaps(of gone: Int64, by kept: Int64) throws {
        let caps = CapLedger(db)
        var usage = CapUsage()
        let moment = try caps.hold([.device(gone), .device(kept)], into: &usage, at: now)
        usage.inherit(from: gone, by: kept, at: moment)
        try caps.write(usage)
    }

    /// Copies the silent ledger entries of the deleted device, with the current time as their reservation time.
    /// Their lease numbers are negative, so that they never collide with the device's own entries for the same run.
    private func inheritLedger(of gone: Int64, by kept: Int64, at moment: Timestamp) throws {
        try db.execute(
            """
            INSERT INTO silent_ledger (device_id, run_id, lease_number, reserved_at, settled_at)
            SELECT $2, run_id,
                least(0, (
                    SELECT min(lease_number) FROM silent_ledger AS own
                    WHERE own.device_id = $2 AND own.run_id = inherited.run_id
                )) - row_number() OVER (PARTITION BY run_id ORDER BY lease_number),
                $3, coalesce(settled_at, $4)
            FROM silent_ledger AS inherited WHERE device_id = $1
            """, gone, kept, moment, moment + .milliseconds(RegistrationPolicy.flightMaxMs))
    }
}

/// Deletes devices and all that belongs to them, except their deliveries.
struct DeviceDeletion {
    private let db: PostgresSession

    init(_ db: PostgresSession) { self.db = db }

    /// Locks the segments, and the silent budget of these devices, until the transaction ends. Until then, no other
    /// transaction adds devices to segments, or reserves budget for these devices. Returns the time from which they
    /// are locked.
    @discardableResult
    func begin(_ devices: [Int64], at now: Timestamp) throws -> Timestamp {
        try SegmentCatalog(db).hold()
        return try SilentLedger(db).hold(devices.sorted(), at: now)
    }

    /// Removes the devices from their segments, and deletes their tags, old tokens, reports and secrets.
    func empty(_ devices: [Int64]) throws {
        try db.execute(
            """
            WITH leaving AS (DELETE FROM segment_member WHERE device_id = ANY ($1) RETURNING segment_id)
            UPDATE segment SET members = members - leavers.count
            FROM (SELECT segment_id, count(*) FROM leaving GROUP BY segment_id) AS leavers
            WHERE segment.id = leavers.segment_id
            """, devices)
        for table in ["tag", "token_history", "feedback_event", "installation_secret"] {
            try db.execute(.once("DELETE FROM \(table) WHERE device_id = ANY ($1)"), devices)
        }
    }

    /// Deletes the devices and all their data except the silent ledger.
    func delete(_ devices: [Int64]) throws {
        guard !devices.isEmpty else { return }
        try empty(devices)
        for table in ["proven_token", "token_heard", "silent_slot"] {
            try db.execute("DELETE FROM \(table) WHERE device_id = ANY ($1)", devices)
        }
        try db.execute("DELETE FROM device WHERE id = ANY ($1)", devices)
    }

    func deleteLedger(of devices: [Int64]) throws {
        try db.execute("DELETE FROM silent_ledger WHERE device_id = ANY ($1)", devices)
    }
}
