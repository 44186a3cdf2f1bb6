package import Model
import Store

extension RelationalStore {
    package func setInstallationSecret(hash: [UInt8], of device: Int64, now: Timestamp) async throws -> Bool {
        try await transaction(.durable) { db in
            try db.execute(
                """
                INSERT INTO installation_secret (device_id, secret_hash, made_at)
                SELECT id, $2, $3 FROM device WHERE id = $1 AND installation_id IS NOT NULL
                ON CONFLICT (device_id) DO UPDATE SET secret_hash = excluded.secret_hash, made_at = excluded.made_at
                """, device, hash, now) > 0
        }
    }

    package func installation(secretHash: [UInt8]) async throws -> ReportingInstallation? {
        try await snapshot(.short) { db in
            try db.all(
                """
                SELECT device.id, device.installation_id, topic.name FROM installation_secret
                JOIN device ON device.id = installation_secret.device_id
                JOIN topic ON topic.id = device.topic_id
                WHERE installation_secret.secret_hash = $1 AND device.installation_id IS NOT NULL
                """, secretHash
            ) { row in
                ReportingInstallation(
                    device: try row.int64(0), installationID: try row.text(1), topic: try row.text(2))
            }.first
        }
    }
}
