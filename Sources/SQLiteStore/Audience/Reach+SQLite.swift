import GRDB
package import Model
package import Store

extension SQLiteFileStore {
    package func reach(
        of audience: AudienceExpression, topic: String, pushType: PushType, now: Timestamp
    ) async throws -> Reach {
        try await read { db in
            let selection = try AudienceSelection(db, audience, topic: topic, now: now)
            var count = ReachCount(FreezePolicy(pushType))
            var rows = ReachRows()
            return try rows.count(selection, db, budget: nil, caps: nil, into: &count)
        }
    }

    package func reach(
        of campaign: Campaign, budget: Model.Configuration.SilentBudget?, caps: CapPreview?, waves: RecipientWaves?,
        now: Timestamp
    ) async throws -> Reach {
        try await read { db in
            try AudienceSelection.with(campaign, now: now, db) { selection in
                let budget = campaign.pushType == .background ? budget : nil
                let spending = try budget.map { try SilentSpending(db, $0, now: now) }
                defer { spending?.close() }
                var policy = FreezePolicy(campaign, waves: waves, seeds: selection.seeds)
                try selection.tellUsers(&policy, cutShort: nil, db)
                var count = ReachCount(policy, variants: campaign.variants.count)
                var rows = ReachRows()
                let forecast = try caps.map {
                    CapForecast($0, classes: try CapLedger(db).classes(), now: now, gap: try BackupMarks.gap(db))
                }
                return try rows.count(selection, db, budget: spending, caps: forecast, into: &count)
            }
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
        try await read { db in
            try AudienceSelection.with(campaign, now: now, db) { selection in
                try Self.samples(selection, fields: fields, limit: limit, db)
            }
        }
    }

    private static func samples(
        _ selection: AudienceSelection, fields: [AudienceField], limit: Int, _ db: Database
    ) throws -> [DeviceSample] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT min(device.id), device.locale FROM device
                WHERE \(selection.sql) AND device.status = \(DeviceStatus.active.code)
                GROUP BY device.locale ORDER BY count(*) DESC, device.locale LIMIT \(limit)
                """, arguments: StatementArguments(selection.arguments))
        return try rows.map { row in
            DeviceSample(device: row[0], locale: row[1], fields: try Self.fields(fields, of: row[0], db))
        }
    }

    package func fields(_ fields: [AudienceField], ofDevice device: Int64) async throws -> [String?] {
        try await read(.short) { db in try Self.fields(fields, of: device, db) }
    }

    private static func fields(_ fields: [AudienceField], of device: Int64, _ db: Database) throws -> [String?] {
        guard !fields.isEmpty else { return [] }
        var parameters = AudienceParameters()
        let columns = fields.map { field in AudienceColumn.printed(field) { parameters.add($0) } }
        let id = parameters.add(device)
        let row = try RowStatement(
            db, "SELECT \(columns.joined(separator: ", ")) FROM device WHERE id = \(id)",
            arguments: StatementArguments(parameters.values))
        defer { row.reset() }
        guard try row.step() else { return fields.map { _ in nil } }
        return fields.indices.map { row.text(Int32($0)) }
    }
}

/// The devices of an audience, in order of id.
private struct ReachRows {
    private var locales = TextCodes()
    private var zones = TextCodes()

    mutating func count(
        _ selection: AudienceSelection, _ db: Database, budget: SilentSpending?, caps: CapForecast?,
        into count: inout ReachCount
    ) throws -> Reach {
        var caps = caps
        let rows = try RowStatement(
            db,
            """
            SELECT device.id, device.environment, device.status, device.alerts_allowed, device.locale, device.time_zone,
                \(count.goesByUser || caps != nil ? "device.user_id" : "NULL")
            FROM device
            WHERE \(selection.sql)
            ORDER BY device.id
            """, arguments: StatementArguments(selection.arguments))
        defer { rows.reset() }
        while try rows.step() {
            let device = rows.int64(0)
            let isReached = count.decide(
                device: device, PushEnvironment(code: rows.int64(1)), status: DeviceStatus(code: rows.int64(2)),
                alertsAllowed: rows.isNull(3) || rows.int64(3) != 0, user: { rows.text(6) }, locale: { rows.text(4) },
                zone: { rows.text(5) })
            guard let variant = isReached else { continue }
            count.add(
                environment: rows.int64(1), locale: locales.code(rows, 4), zone: zones.code(rows, 5),
                variant: variant.index, stage: variant.stage,
                isOverBudget: try budget?.isUsedUp(for: device) ?? false)
            let user = caps == nil ? nil : rows.text(6)
            caps?.add(device, user: user, wave: variant.wave)
            if caps?.isFull == true { try decide(&caps, db) }
        }
        try decide(&caps, db)
        return count.reach(locales: locales.texts, zones: zones.texts, caps: caps?.slice)
    }

    private func decide(_ caps: inout CapForecast?, _ db: Database) throws {
        guard let keys = caps?.keys else { return }
        var book = CapBook()
        try CapLedger(db).read(keys.sorted(), into: &book)
        caps?.decide(book)
    }
}

/// Which devices have used up their silent budget at one moment. Devices are asked for in rising order of id: the ledger
/// is read along with them, so that nothing is kept.
final class SilentSpending {
    private let rows: RowStatement
    private let window: RollingWindow
    private var hasRow: Bool

    init(_ db: Database, _ budget: Model.Configuration.SilentBudget, now: Timestamp) throws {
        window = RollingWindow(budget, at: now, gap: try BackupMarks.gap(db))
        rows = try RowStatement(
            db,
            """
            SELECT device_id, count(*) FROM silent_ledger
            WHERE settled_at IS NULL OR settled_at > :since
            GROUP BY device_id ORDER BY device_id
            """, arguments: ["since": window.opensAt.milliseconds])
        hasRow = try rows.step()
    }

    func isUsedUp(for device: Int64) throws -> Bool {
        while hasRow, rows.int64(0) < device { hasRow = try rows.step() }
        let used = hasRow && rows.int64(0) == device ? rows.int(1) : 0
        return window.isFull(used)
    }

    func close() { rows.reset() }
}

/// Small numbers for the texts of a column, so that a million rows naming a few dozen locales make no strings: equal
/// texts have equal numbers, from 0 in order of appearance.
struct TextCodes {
    /// By number; nil where the column was NULL.
    private(set) var texts: [String?] = []
    private var codes: [UInt64: Int] = [:]
    private var null: Int?
    /// Texts whose hash was taken; as good as never.
    private var others: [String: Int] = [:]

    mutating func code(_ rows: RowStatement, _ column: Int32) -> Int {
        rows.withText(column) { bytes in
            guard let bytes else { return nullCode() }
            let hash = FNV1a.hash(bytes: bytes.span)
            if let code = codes[hash], texts[code]?.utf8.elementsEqual(bytes) == true { return code }
            return newCode(String(decoding: bytes, as: UTF8.self), hash)
        }
    }

    private mutating func nullCode() -> Int {
        if let null { return null }
        texts.append(nil)
        null = texts.count - 1
        return texts.count - 1
    }

    private mutating func newCode(_ text: String, _ hash: UInt64) -> Int {
        if codes[hash] != nil, let known = others[text] { return known }
        texts.append(text)
        if codes[hash] == nil { codes[hash] = texts.count - 1 } else { others[text] = texts.count - 1 }
        return texts.count - 1
    }
}
