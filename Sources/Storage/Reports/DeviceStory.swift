import Foundation
import GRDB
package import Model

/// Everything the store knows of one device, as recorded; the engine puts it into words.
package struct DeviceStory: Hashable, Sendable {
    /// One run, and what it did about the device.
    package struct Chapter: Hashable, Sendable {
        package var run: Run
        /// Nil: the device was not in the audience when it was frozen.
        package var delivery: DeviceDelivery?

        package init(run: Run, delivery: DeviceDelivery?) {
            self.run = run
            self.delivery = delivery
        }
    }

    package struct OldToken: Hashable, Sendable {
        package var generation: Int
        package var token: DeviceToken
        package var environment: PushEnvironment
        package var replacedAt: Timestamp

        package init(generation: Int, token: DeviceToken, environment: PushEnvironment, replacedAt: Timestamp) {
            self.generation = generation
            self.token = token
            self.environment = environment
            self.replacedAt = replacedAt
        }
    }

    package var device: StoredDevice
    /// Oldest first.
    package var oldTokens: [OldToken]
    /// Oldest first; of the runs that left the device out, those of its topic.
    package var chapters: [Chapter]
    /// There were more runs, before these.
    package var isCut: Bool
    /// When the outcome of each background push in the silent ledger came; nil while in flight.
    package var silentPushes: [Timestamp?]

    package init(
        device: StoredDevice, oldTokens: [OldToken] = [], chapters: [Chapter] = [], isCut: Bool = false,
        silentPushes: [Timestamp?] = []
    ) {
        self.device = device
        self.oldTokens = oldTokens
        self.chapters = chapters
        self.isCut = isCut
        self.silentPushes = silentPushes
    }
}

extension DeviceStory {
    /// How many of the silent budget's slots are used now, and when the next is free, which may be now.
    package func silentBudget(
        _ budget: Model.Configuration.SilentBudget, now: Timestamp
    ) -> (used: Int, nextSlot: Timestamp?) {
        let opens = now - budget.window
        let used = silentPushes.count { $0.map { $0 > opens } ?? true }
        let decision = SilentSlot.decide(
            ends: silentPushes.map { $0?.milliseconds }, budget: budget, now: now, expiresAt: nil)
        switch decision {
        case .send: return (used, now)
        case .wait(let moment, _): return (used, moment)
        case .suppress: return (used, nil)
        }
    }
}

extension Store {
    /// What happened to one device, from one snapshot; nil when there is no such device.
    ///
    /// - Parameter runsMax: the latest runs are told, so many that had the device and so many that left it out.
    package func story(ofDevice device: Int64, runsMax: Int = 500) async throws -> DeviceStory? {
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
