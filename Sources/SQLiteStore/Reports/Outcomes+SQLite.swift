import Foundation
import GRDB
import Model
import RelationalStore
package import Store

extension SQLiteFileStore {
    package func outcomes(
        run: Int64, batch: @escaping @Sendable ([OutcomeRow]) throws -> Void
    ) async throws -> Int {
        try await read { db in
            if let moment = try OutcomeSummary(db, run).prunedAt() {
                throw StoreError.outcomesPruned(run: run, at: moment)
            }
            let rows = try RowStatement(
                db,
                """
                SELECT \(OutcomeColumns.sql)
                FROM delivery LEFT JOIN device ON device.id = delivery.device_id
                WHERE delivery.run_id = :run ORDER BY delivery.device_id
                """)
            defer { rows.reset() }
            try rows.bind(run, rows.parameter(":run"))
            var outcomes: [OutcomeRow] = []
            var count = 0
            while try rows.step() {
                outcomes.append(OutcomeColumns.outcome(rows))
                guard outcomes.count == StoreLimits.exportBatchRows else { continue }
                count += outcomes.count
                try batch(outcomes)
                outcomes.removeAll(keepingCapacity: true)
            }
            if !outcomes.isEmpty { try batch(outcomes) }
            return count + outcomes.count
        }
    }

    package func reached(by run: Int64) async throws -> ReachedDevices {
        try await read { db in
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT count(*), count(*) FILTER (WHERE device.id IS NULL),
                        count(*) FILTER (WHERE device.environment = :production)
                    FROM delivery AS sent LEFT JOIN device ON device.id = sent.device_id
                    WHERE sent.run_id = :run AND \(AudienceSelection.wasReached)
                    """, arguments: ["run": run, "production": PushEnvironment.production.code])
            return ReachedDevices(all: row?[0] ?? 0, gone: row?[1] ?? 0, production: row?[2] ?? 0)
        }
    }

    package func waves(_ run: Int64) async throws -> [WaveShare] {
        try await read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT delivery.wave,
                        CASE WHEN delivery.profile IS NULL THEN device.time_zone
                            ELSE nullif(delivery_profile.time_zone, '') END AS zone,
                        count(*) AS deliveries
                    FROM delivery LEFT JOIN device ON device.id = delivery.device_id
                    LEFT JOIN delivery_profile ON delivery_profile.id = delivery.profile
                    WHERE delivery.run_id = :run AND delivery.wave IS NOT NULL
                    GROUP BY delivery.wave, zone
                    ORDER BY delivery.wave, deliveries DESC, zone
                    """, arguments: ["run": run]
            ).map { WaveShare(startsAt: Timestamp(milliseconds: $0[0]), zone: $0[1], deliveries: $0[2]) }
        }
    }

    package func history(ofDevice device: Int64, limit: Int) async throws -> [DeviceDelivery] {
        // Down to runs that had the device, which may be the first ones of all.
        try await read(.expensive) { db in try Self.history(ofDevice: device, limit: limit, db) }
    }

    static func history(ofDevice device: Int64, limit: Int, _ db: Database) throws -> [DeviceDelivery] {
        let rows = try RowStatement(
            db,
            """
            SELECT \(OutcomeColumns.deliverySQL)
            FROM run
            JOIN delivery ON delivery.run_id = run.id AND delivery.device_id = :device
            LEFT JOIN device ON device.id = delivery.device_id
            ORDER BY run.id DESC LIMIT :limit
            """)
        defer { rows.reset() }
        try rows.bind(device, rows.parameter(":device"))
        try rows.bind(Int64(limit), rows.parameter(":limit"))
        var history: [DeviceDelivery] = []
        while try rows.step() { history.append(OutcomeColumns.delivery(rows)) }
        for index in history.indices where history[index].outcome.state == .pending {
            history[index].isLeased = try isLeased(history[index], db)
        }
        return history
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

/// The columns of an outcome, read from `delivery` and its `device`.
enum OutcomeColumns {
    static let sql = """
        delivery.device_id, device.installation_id, lower(hex(substr(device.token, -4))), delivery.environment,
        CASE WHEN delivery.profile IS NULL THEN device.locale
            ELSE (SELECT nullif(locale, '') FROM delivery_profile WHERE id = delivery.profile) END,
        delivery.state, delivery.status, delivery.reason, delivery.attempt, delivery.changed_at,
        delivery.generation, delivery.variant, delivery.locale_index,
        (SELECT nullif(app_version, '') FROM delivery_profile WHERE id = delivery.profile), delivery.doubts
        """
    /// Where further columns begin.
    static let count: Int32 = 15

    static func outcome(_ rows: RowStatement) -> OutcomeRow {
        let state = DeliveryState(code: rows.int64(5))
        let end = rows.text(2)
        return OutcomeRow(
            device: rows.int64(0), installationID: rows.text(1), tokenEnd: end == "" ? nil : end,
            environment: PushEnvironment(code: rows.int64(3)), locale: rows.text(4), state: state, status: rows.int(6),
            reason: rows.text(7), attempts: rows.int(8), doubts: rows.int(14),
            settledAt: state == .pending ? nil : Timestamp(milliseconds: rows.int64(9)), generation: rows.int(10),
            variant: rows.int64OrNil(11).map(Int.init), localeIndex: rows.int64OrNil(12).map(Int.init),
            appVersion: rows.text(13))
    }

    /// Behind the others, for ``delivery(_:)``.
    static let deliverySQL =
        sql
            + """
            , run.id, run.campaign, run.occurrence, run.is_test, delivery.not_before, delivery.held_for,
            delivery.held_until
            """

    static func delivery(_ rows: RowStatement) -> DeviceDelivery {
        let outcome = outcome(rows)
        let notBefore = rows.int64OrNil(count + 4)
        return DeviceDelivery(
            run: rows.int64(count), campaign: rows.text(count + 1) ?? "", occurrence: rows.text(count + 2) ?? "",
            isTest: rows.int64(count + 3) != 0, outcome: outcome,
            notBefore: outcome.state == .pending ? NotBefore.moment(notBefore) : nil,
            isLeased: false, heldFor: rows.text(count + 5).flatMap(SuppressionReason.init),
            heldUntil: Timestamp(stored: rows.int64OrNil(count + 6)))
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
