import Foundation
import GRDB
package import Store
import Model

extension SQLiteFileStore {
    /// What happened to one device, from one snapshot; nil when there is no such device.
    ///
    /// - Parameter runsMax: the latest runs are told, so many that had the device and so many that left it out.
    package func story(ofDevice device: Int64, runsMax: Int) async throws -> DeviceStory? {
        try await read { db in
            let row = try Row.fetchOne(
                db, sql: StoredDeviceRow.select(where: "device.id = :device"), arguments: ["device": device])
            guard let row else { return nil }
            var story = DeviceStory(device: try StoredDeviceRow.device(row))
            story.oldTokens = try Self.oldTokens(of: device, db)
            let deliveries = try Self.history(ofDevice: device, limit: runsMax, db)
            let others = try RunRow.fetch(
                db,
                """
                WHERE is_test = 0
                    AND NOT EXISTS (SELECT 1 FROM delivery WHERE run_id = run.id AND device_id = :device)
                ORDER BY id DESC LIMIT :limit
                """, ["device": device, "limit": runsMax])
            story.isCut = deliveries.count == runsMax || others.count == runsMax
            story.chapters =
                try deliveries.map { DeviceStory.Chapter(run: try RunRow.require(db, $0.run), delivery: $0) }
                + others.filter { $0.definition.campaign.deviceTopic == story.device.record.topic }
                .map { DeviceStory.Chapter(run: $0, delivery: nil) }
            story.chapters.sort { $0.run.id < $1.run.id }
            story.silentPushes = try Row.fetchAll(
                db, sql: "SELECT settled_at FROM silent_ledger WHERE device_id = :device", arguments: ["device": device]
            ).map { Timestamp(stored: $0[0]) }
            return story
        }
    }

    private static func oldTokens(of device: Int64, _ db: Database) throws -> [DeviceStory.OldToken] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT token_generation, token, environment, replaced_at FROM token_history
                WHERE device_id = :device ORDER BY token_generation
                """, arguments: ["device": device]
        ).compactMap { row in
            DeviceToken(bytes: Array(row[1] as Data)).map { token in
                DeviceStory.OldToken(
                    generation: row[0], token: token, environment: PushEnvironment(code: row[2]),
                    replacedAt: Timestamp(milliseconds: row[3]))
            }
        }
    }
}
