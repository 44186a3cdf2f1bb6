import GRDB
package import Model
import RelationalStore
package import Store

extension SQLiteFileStore {
    package func removeDevice(_ id: Int64, now: Timestamp, by actor: Actor) async throws -> DeviceRemoval? {
        try await write { db in
            guard let device = try StoredDevices(db).find(id) else { return nil }
            let removal = try Self.remove(id, now: now, db)
            try EventLog.record(
                db, kind: .deviceRemoved, run: nil, actor: actor, detail: device.summary, now: now)
            return removal
        }
    }

    private static func remove(_ device: Int64, now: Timestamp, _ db: Database) throws -> DeviceRemoval {
        let isCounted = try Bool.fetchOne(
            db,
            sql: """
                SELECT EXISTS (
                    SELECT 1 FROM silent_ledger
                    WHERE device_id = :device AND (settled_at IS NULL OR settled_at > :counting)
                )
                """, arguments: ["device": device, "counting": PrunePolicy.countingSince(now).milliseconds])
        let isCapped = try CapLedger(db).counting([device], at: now).contains(device)
        guard isCounted ?? false || isCapped else {
            try DevicePruning.run(DevicePruning.deletions, device, db)
            return .deleted
        }
        try DevicePruning.run(emptyings, device, db)
        // Do not set `status_at` before the last registration. Otherwise the registration would look newer than the
        // removal.
        try db.execute(
            sql: """
                UPDATE device SET
                    status = \(DeviceStatus.gone.code), status_reason = :reason,
                    status_at = max(:now, coalesce(registered_at, :now)), \(StoredDevice.removedValues)
                WHERE id = :device
                """, arguments: ["device": device, "reason": StoredDevice.removedReason, "now": now.milliseconds])
        return .emptied
    }

    private static let emptyings = [
        """
        UPDATE segment SET members = members - 1
        WHERE id IN (SELECT segment_id FROM segment_member WHERE device_id = :device)
        """,
        "DELETE FROM segment_member WHERE device_id = :device",
        "DELETE FROM tag WHERE device_id = :device",
        "DELETE FROM token_history WHERE device_id = :device",
        "DELETE FROM feedback_event WHERE device_id = :device",
        "DELETE FROM installation_secret WHERE device_id = :device",
    ]
}
