package import Model
package import Store
import RelationalStore

extension PostgresDatabase {
    /// The number of devices deleted per transaction.
    private static let pruneBatchRows = 2_000

    package func pruneCandidates(
        _ policy: PrunePolicy, after: Int64
    ) async throws -> [(device: Int64, reason: PrunePolicy.Reason)] {
        try await read { db in try DevicePruning(db, policy).candidates(after: after, limit: Self.pruneBatchRows) }
    }

    package func prune(_ devices: [Int64], _ policy: PrunePolicy) async throws -> [PrunePolicy.Reason] {
        try await retryingWhileBusy { db in try DevicePruning(db, policy).delete(devices) }
    }

    package func removeDevice(_ id: Int64, now: Timestamp, by actor: Actor) async throws -> DeviceRemoval? {
        try await write(.durable) { db in
            guard try StoredDevices(db).find(id) != nil else { return nil }
            let deletion = DeviceDeletion(db)
            try deletion.begin([id], at: now)
            let isCapped = try CapLedger(db).counting([id], at: now, isHeld: true).contains(id)
            // Lock the device last, and read it again: another transaction may have changed it.
            try db.execute("SELECT 1 FROM device WHERE id = $1 FOR UPDATE", id)
            guard let device = try StoredDevices(db).find(id) else { return nil }
            let removal = try Self.remove(device, isCapped: isCapped, now: now, deletion, db)
            try EventLog.record(
                db, kind: .deviceRemoved, run: nil, actor: actor, detail: device.summary, now: now)
            return removal
        }
    }

    private static func remove(
        _ device: StoredDevice, isCapped: Bool, now: Timestamp, _ deletion: DeviceDeletion, _ db: PostgresSession
    ) throws -> DeviceRemoval {
        let counting = try db.rows(
            """
            SELECT 1 FROM silent_ledger WHERE device_id = $1 AND (settled_at IS NULL OR settled_at > $2) LIMIT 1
            """, device.id, PrunePolicy.countingSince(now))
        guard isCapped || !counting.isEmpty else {
            try deletion.delete([device.id])
            try deletion.deleteLedger(of: [device.id])
            return .deleted
        }
        try deletion.empty([device.id])
        // Do not set `status_at` before the last registration. Otherwise an import of the same record would make the
        // device active again.
        try db.execute(
            """
            UPDATE device SET
                status = \(DeviceStatus.gone.code), status_reason = $2, status_at = greatest($3, registered_at),
                \(StoredDevice.removedValues)
            WHERE id = $1
            """, device.id, StoredDevice.removedReason, now)
        return .emptied
    }
}

/// Finds and deletes devices that are no longer needed. Their deliveries stay.
struct DevicePruning {
    private let db: PostgresSession
    private let policy: PrunePolicy

    init(_ db: PostgresSession, _ policy: PrunePolicy) {
        self.db = db
        self.policy = policy
    }

    /// Returns the matching devices with an id above `after`, in order of id.
    func candidates(after: Int64, limit: Int) throws -> [(device: Int64, reason: PrunePolicy.Reason)] {
        let found = try found(where: "device.id > $5 ORDER BY device.id LIMIT \(limit)", after)
        return keep(try CapLedger(db).counting(found.map(\.device), at: policy.now, isHeld: false), found)
    }

    /// Deletes the devices that still match. The others were registered or seen in the meantime.
    func delete(_ devices: [Int64]) throws -> [PrunePolicy.Reason] {
        let deletion = DeviceDeletion(db)
        try deletion.begin(devices, at: policy.now)
        // Lock the caps before any device, as in a lease.
        let capped = try CapLedger(db).counting(devices, at: policy.now, isHeld: true)
        let matching = try found(where: "device.id = ANY ($5) ORDER BY device.id FOR UPDATE OF device", devices)
        let found = keep(capped, matching)
        let doomed = found.filter { $0.reason != .kept }.map(\.device)
        try deletion.delete(doomed)
        try deletion.deleteLedger(of: doomed)
        return found.map(\.reason)
    }

    private func keep(
        _ capped: Set<Int64>, _ found: [(device: Int64, reason: PrunePolicy.Reason)]
    ) -> [(device: Int64, reason: PrunePolicy.Reason)] {
        found.map { ($0.device, capped.contains($0.device) ? .kept : $0.reason) }
    }

    /// Returns the devices that match. A device with neither `last_seen_at` nor `registered_at` is pruned only if it
    /// is gone.
    private func found(
        where condition: String, _ value: any PostgresValue
    ) throws -> [(device: Int64, reason: PrunePolicy.Reason)] {
        try db.rows(
            """
            SELECT
                device.id, \(policy.goneCondition) AND coalesce(device.status_at < $2, false),
                EXISTS (
                    SELECT 1 FROM silent_ledger
                    WHERE silent_ledger.device_id = device.id AND (settled_at IS NULL OR settled_at > $4)
                )
            FROM device
            WHERE ($1::text IS NULL OR topic_id = (SELECT id FROM topic WHERE name = $1))
                AND (
                    \(policy.goneCondition) AND device.status_at < $2
                    OR greatest(last_seen_at, registered_at) < $3
                )
                AND \(condition)
            """, policy.topic, policy.goneBefore, policy.notSeenSince, policy.countingSince, value
        ).map { row in
            (try row.int64(0), PrunePolicy.reason(isGone: try row.bool(1), hasCountingPush: try row.bool(2)))
        }
    }
}
