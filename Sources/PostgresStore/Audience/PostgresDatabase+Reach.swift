package import Model
package import RelationalStore
package import Store

extension PostgresSession {
    package func reach(
        _ count: ReachCount, _ selection: AudienceSelection, window: RollingWindow?, caps: CapForecast?
    ) throws -> Reach {
        try ReachRows(self).reach(count, selection, window: window, caps: caps)
    }

    package static func sql(of audience: ResolvedAudience, _ condition: inout AudienceCondition) -> String {
        AudienceCompiler.sql(audience, &condition)
    }
}

extension PostgresDatabase {
    package func selecting<Value: Sendable>(
        _ campaign: Campaign, now: Timestamp,
        _ body: @escaping @Sendable (PostgresSession, AudienceSelection) throws -> Value
    ) async throws -> Value {
        let analyst = try await analystCondition(campaign, now: now)
        return try await read { db in
            try body(db, AudienceSelection.of(campaign, analyst: analyst, now: now, db))
        }
    }
}

/// The devices of an audience, in order of id.
private struct ReachRows {
    private let db: PostgresSession

    init(_ db: PostgresSession) { self.db = db }

    /// - Parameters:
    ///   - window: the window of the silent budget to check.
    ///   - caps: the forecast of the frequency caps for a run of this audience.
    func reach(
        _ count: ReachCount, _ selection: AudienceSelection, window: RollingWindow?, caps: CapForecast?
    ) throws -> Reach {
        var (count, caps) = (count, caps)
        var (locales, zones) = (TextNumbers(), TextNumbers())
        try each(
            selection, window: window, withUsers: count.goesByUser || caps != nil,
            inBatches: caps != nil || count.readsOpens
        ) { row in
            let (zone, locale, user) = (try row.textOrNil(5), try row.textOrNil(4), try row.textOrNil(7))
            let environment = try row.int64(1)
            let isReached = try count.decide(
                device: try row.int64(0), PushEnvironment(code: environment),
                status: DeviceStatus(code: try row.int64(2)),
                alertsAllowed: try row.boolOrNil(3) ?? true, user: { user }, locale: { locale }, zone: { zone })
            guard let variant = isReached else { return }
            count.add(
                environment: environment, locale: locales.number(locale), zone: zones.number(zone),
                variant, isOverBudget: window?.isFull(try row.int(6)) ?? false)
            caps?.add(try row.int64(0), user: user, wave: variant.wave)
        } afterBatch: {
            guard let keys = caps?.keys else { return }
            var usage = CapUsage()
            try CapLedger(db).look(keys, into: &usage)
            caps?.decide(usage)
        }
        return count.reach(locales: locales.texts, zones: zones.texts, caps: caps?.slice)
    }

    private static let batchRows = 2_000

    /// - Parameter inBatches: whether to read the rows in batches, because `body` or `afterBatch` executes other
    ///   statements. If not, rows are read as they arrive.
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
        try db.eachInBatches(sql, values: selection.values, of: Self.batchRows, body, afterBatch: afterBatch)
    }
}

/// Small numbers that stand for the texts of a column, from 0 in order of appearance.
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
