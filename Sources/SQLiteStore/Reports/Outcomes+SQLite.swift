import Foundation
import GRDB
import Model
import RelationalStore
package import Store

extension SQLiteFileStore {
    package func history(ofDevice device: Int64, limit: Int) async throws -> [DeviceDelivery] {
        // Down to runs that had the device, which may be the first ones of all.
        try await read(.expensive) { db in try Self.history(ofDevice: device, limit: limit, db) }
    }

    static func history(ofDevice device: Int64, limit: Int, _ db: Database) throws -> [DeviceDelivery] {
        var history = try db.all(
            """
            SELECT \(OutcomeColumns<Database>.sql), run.id, run.campaign, run.occurrence, run.is_test,
                delivery.not_before, delivery.held_for, delivery.held_until
            FROM run
            JOIN delivery ON delivery.run_id = run.id AND delivery.device_id = $1
            LEFT JOIN device ON device.id = delivery.device_id
            ORDER BY run.id DESC LIMIT $2
            """, device, limit, read: delivery)
        for index in history.indices where history[index].outcome.state == .pending {
            history[index].isLeased = try isLeased(history[index], db)
        }
        return history
    }

    private static func delivery(_ row: SQLiteFields) throws -> DeviceDelivery {
        let (outcome, further) = (try OutcomeColumns<Database>.outcome(row), OutcomeColumns<Database>.count)
        return DeviceDelivery(
            run: try row.int64(further), campaign: try row.text(further + 1), occurrence: try row.text(further + 2),
            isTest: try row.bool(further + 3), outcome: outcome,
            notBefore: outcome.state == .pending ? NotBefore.moment(try row.int64OrNil(further + 4)) : nil,
            isLeased: false, heldFor: try row.textOrNil(further + 5).flatMap(SuppressionReason.init),
            heldUntil: try row.timestampOrNil(further + 6))
    }

    private static func isLeased(_ delivery: DeviceDelivery, _ db: Database) throws -> Bool {
        let rows = try RowStatement(
            db,
            """
            SELECT entries, leases FROM lease JOIN delivery ON delivery.run_id = lease.run_id AND device_id = :device
            WHERE lease.run_id = :run
            """)
        defer { rows.reset() }
        try rows.bind(delivery.run, rows.parameter(":run"))
        try rows.bind(delivery.outcome.device, rows.parameter(":device"))
        while try rows.step() {
            let isNamed = LeaseEntry.unpack(rows.bytes(0)).contains {
                $0.device == delivery.outcome.device && $0.number > rows.int(1)
            }
            if isNamed { return true }
        }
        return false
    }
}

extension SQLiteFileStore {
    package func story(ofDevice device: Int64, runsMax: Int) async throws -> DeviceStory? {
        try await read(.expensive) { db in
            let row = try Row.fetchOne(
                db, sql: StoredDeviceRow.select(where: "device.id = :device"), arguments: ["device": device])
            guard let row else { return nil }
            var story = DeviceStory(device: try StoredDeviceRow.device(row))
            story.oldTokens = try Self.oldTokens(of: device, db)
            let deliveries = try Self.history(ofDevice: device, limit: runsMax, db)
            let others = try RunRow.list(
                db,
                """
                WHERE is_test = 0
                    AND NOT EXISTS (SELECT 1 FROM delivery WHERE run_id = run.id AND device_id = $1)
                ORDER BY id DESC LIMIT $2
                """, device, runsMax)
            story.isCut = deliveries.count == runsMax || others.count == runsMax
            story.chapters =
                try deliveries.flatMap { delivery in
                    try RunRow.list(db, "WHERE id = $1", delivery.run).readable
                        .map { DeviceStory.Chapter(run: $0, delivery: delivery) }
                }
                + others.readable.filter { $0.definition.campaign.deviceTopic == story.device.record.topic }
                .map { run in
                    DeviceStory.Chapter(
                        run: run, delivery: nil, prunedAt: try OutcomeSummary(db, run.id).prunedAt())
                }
            story.chapters.sort { $0.run.id < $1.run.id }
            story.silentPushes = try Row.fetchAll(
                db, sql: "SELECT settled_at FROM silent_ledger WHERE device_id = :device", arguments: ["device": device]
            ).map { Timestamp(stored: $0[0]) }
            story.cappedPushes = try CapLedger(db).story(of: story.device)
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
