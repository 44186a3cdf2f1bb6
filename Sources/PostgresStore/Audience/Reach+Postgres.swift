package import Model
package import Store
import RelationalStore

extension PostgresDatabase {
    package func reach(
        of audience: AudienceExpression, topic: String, pushType: PushType, now: Timestamp
    ) async throws -> Reach {
        try await read { db in
            let selection = try AudienceSelection(db, audience, topic: topic, now: now)
            return try ReachRows(db).reach(ReachCount(FreezePolicy(pushType)), selection, window: nil, caps: nil)
        }
    }

    package func reach(
        of campaign: Campaign, budget: Configuration.SilentBudget?, caps: CapPreview?, waves: RecipientWaves?,
        now: Timestamp
    ) async throws -> Reach {
        let devices = try await analystDevices(campaign, now: now)
        return try await read { db in
            let selection = try AudienceSelection.of(campaign, devices: devices, now: now, db)
            let budget = campaign.pushType == .background ? budget : nil
            var policy = FreezePolicy(campaign, waves: waves, seeds: selection.seeds)
            try selection.tellUsers(&policy, cutShort: nil, db)
            let count = ReachCount(policy, variants: campaign.variants.count)
            let forecast = try caps.map { CapForecast($0, classes: try CapLedger(db).classes(), now: now) }
            return try ReachRows(db).reach(
                count, selection, window: budget.map { RollingWindow($0, at: now) }, caps: forecast)
        }
    }

    package func sampleDevices(
        of audience: AudienceExpression, topic: String, now: Timestamp, fields: [AudienceField], limit: Int
    ) async throws -> [DeviceSample] {
        try await read { db in
            let selection = try AudienceSelection(db, audience, topic: topic, now: now)
            return try Self.samples(selection, fields: fields, limit: limit, db)
        }
    }

    package func sampleDevices(
        of campaign: Campaign, now: Timestamp, fields: [AudienceField], limit: Int
    ) async throws -> [DeviceSample] {
        let devices = try await analystDevices(campaign, now: now)
        return try await read { db in
            let selection = try AudienceSelection.of(campaign, devices: devices, now: now, db)
            return try Self.samples(selection, fields: fields, limit: limit, db)
        }
    }

    private static func samples(
        _ selection: AudienceSelection, fields: [AudienceField], limit: Int, _ db: PostgresSession
    ) throws -> [DeviceSample] {
        let rows = try db.rows(
            .once(
                """
                SELECT min(device.id), device.locale FROM device
                WHERE \(selection.sql) AND device.status = \(DeviceStatus.active.code)
                GROUP BY device.locale ORDER BY count(*) DESC, device.locale NULLS FIRST LIMIT \(limit)
                """), values: selection.values)
        return try rows.map { row in
            let device = try row.int64(0)
            return DeviceSample(
                device: device, locale: try row.textOrNil(1), fields: try Self.fields(fields, of: device, db))
        }
    }

    package func fields(_ fields: [AudienceField], ofDevice device: Int64) async throws -> [String?] {
        try await read(.short) { db in try Self.fields(fields, of: device, db) }
    }

    private static func fields(
        _ fields: [AudienceField], of device: Int64, _ db: PostgresSession
    ) throws -> [String?] {
        guard !fields.isEmpty else { return [] }
        let columns = FieldColumns(fields)
        let row = try db.rows(
            "SELECT device.id\(columns.sql(parameter: 1)) FROM device WHERE device.id = $2", columns.keys, device
        ).first
        guard let row else { return fields.map { _ in nil } }
        return try fields.indices.map { try row.textOrNil(1 + $0) }
    }
}

/// The devices of an audience, in order of id.
private struct ReachRows {
    private let db: PostgresSession

    init(_ db: PostgresSession) { self.db = db }

    /// - Parameters:
    ///   - window: of a silent budget that is to be looked at.
    ///   - caps: of a run of the audience.
    func reach(
        _ count: ReachCount, _ selection: AudienceSelection, window: RollingWindow?, caps: CapForecast?
    ) throws -> Reach {
        var (count, caps) = (count, caps)
        var (locales, zones) = (TextNumbers(), TextNumbers())
        try each(selection, window: window, withUsers: count.goesByUser || caps != nil, inBatches: caps != nil) { row in
            let (zone, locale, user) = (try row.textOrNil(5), try row.textOrNil(4), try row.textOrNil(7))
            let environment = try row.int64(1)
            let isReached = count.decide(
                device: try row.int64(0), PushEnvironment(code: environment),
                status: DeviceStatus(code: try row.int64(2)),
                alertsAllowed: try row.boolOrNil(3) ?? true, user: { user }, locale: { locale }, zone: { zone })
            guard let variant = isReached else { return }
            count.add(
                environment: environment, locale: locales.number(locale), zone: zones.number(zone),
                variant: variant.index, stage: variant.stage,
                isOverBudget: window?.isFull(try row.int(6)) ?? false)
            caps?.add(try row.int64(0), user: user, wave: variant.wave)
        } afterBatch: {
            guard let keys = caps?.keys else { return }
            var book = CapBook()
            try CapLedger(db).look(keys, into: &book)
            caps?.decide(book)
        }
        return count.reach(locales: locales.texts, zones: zones.texts, caps: caps?.slice)
    }

    private static let batchRows = 2_000

    /// - Parameter inBatches: whether other statements are made `afterBatch`; otherwise rows are read as they come.
    private func each(
        _ selection: AudienceSelection, window: RollingWindow?, withUsers: Bool, inBatches: Bool,
        _ body: (PostgresRow) throws -> Void, afterBatch: () throws -> Void
    ) throws {
        let spending =
            window.map { window in
                """
                LEFT JOIN (
                    SELECT device_id, count(*) AS pushes FROM silent_ledger
                    WHERE settled_at IS NULL OR settled_at > \(window.opensAt.milliseconds) GROUP BY device_id
                ) AS spent ON spent.device_id = device.id
                """
            } ?? ""
        let sql = """
            SELECT device.id, device.environment, device.status, device.alerts_allowed, device.locale, device.time_zone,
                \(window == nil ? "0::bigint" : "coalesce(spent.pushes, 0)"),
                \(withUsers ? "device.user_id" : "NULL::text")
            FROM device \(spending)
            WHERE \(selection.sql)
            ORDER BY device.id
            """
        guard inBatches else { return try db.each(.once(sql), values: selection.values, body: body) }
        _ = try db.rows(.once("DECLARE audience NO SCROLL CURSOR FOR \(sql)"), values: selection.values)
        while true {
            let rows = try db.rows(.once("FETCH \(Self.batchRows) FROM audience"), values: [])
            for row in rows { try body(row) }
            try afterBatch()
            if rows.isEmpty { break }
        }
        try db.run("CLOSE audience")
    }
}

/// Small numbers for the texts of a column, from 0 in order of appearance.
private struct TextNumbers {
    private(set) var texts: [String?] = []
    private var numbers: [String?: Int] = [:]

    mutating func number(_ text: String?) -> Int {
        if let known = numbers[text] { return known }
        texts.append(text)
        numbers[text] = texts.count - 1
        return texts.count - 1
    }
}
