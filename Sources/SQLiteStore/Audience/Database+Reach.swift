package import GRDB
package import Model
package import RelationalStore
package import Store

extension Database {
    package func reach(
        _ count: ReachCount, _ selection: AudienceSelection, window: RollingWindow?, caps: CapForecast?
    ) throws -> Reach {
        let spending = try window.map { try SilentSpending(self, $0) }
        defer { spending?.close() }
        var rows = ReachRows()
        return try rows.reach(count, selection, budget: spending, caps: caps, self)
    }
}

/// The devices of an audience, in order of id.
private struct ReachRows {
    private var locales = TextCodes()
    private var zones = TextCodes()

    mutating func reach(
        _ count: ReachCount, _ selection: AudienceSelection, budget: SilentSpending?, caps: CapForecast?, _ db: Database
    ) throws -> Reach {
        var (count, caps) = (count, caps)
        let audience = """
            SELECT device.id, device.environment, device.status, device.alerts_allowed, device.locale, device.time_zone,
                \(count.goesByUser || caps != nil ? "device.user_id" : "NULL")
            FROM device
            WHERE \(selection.sql)
            ORDER BY device.id
            """
        let rows = try db.prepare(.once(audience), selection.values)
        defer { rows.reset() }
        while try rows.step() {
            let device = rows.int64(0)
            let isReached = try count.decide(
                device: device, PushEnvironment(code: rows.int64(1)), status: DeviceStatus(code: rows.int64(2)),
                alertsAllowed: rows.isNull(3) || rows.int64(3) != 0, user: { rows.text(6) }, locale: { rows.text(4) },
                zone: { rows.text(5) })
            guard let variant = isReached else { continue }
            count.add(
                environment: rows.int64(1), locale: locales.code(rows, 4), zone: zones.code(rows, 5),
                variant, isOverBudget: try budget?.isUsedUp(for: device) ?? false)
            let user = caps == nil ? nil : rows.text(6)
            caps?.add(device, user: user, wave: variant.wave)
            if caps?.isFull == true { try decide(&caps, db) }
        }
        try decide(&caps, db)
        return count.reach(locales: locales.texts, zones: zones.texts, caps: caps?.slice)
    }

    private func decide(_ caps: inout CapForecast?, _ db: Database) throws {
        guard let keys = caps?.keys else { return }
        var usage = CapUsage()
        try CapLedger(db).read(keys.sorted(), into: &usage)
        caps?.decide(usage)
    }
}

/// The devices that have used up their silent budget at one moment. Callers must query in ascending order of id. The
/// ledger is read in step with the calls, so that no rows are kept in memory.
final class SilentSpending {
    private let rows: RowStatement
    private let window: RollingWindow
    private var hasRow: Bool

    init(_ db: Database, _ window: RollingWindow) throws {
        self.window = window
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

/// Small numbers that stand for the texts of a column, so that a million rows with a few dozen locales create only a
/// few dozen strings. Equal texts have equal numbers, from 0 in order of appearance.
struct TextCodes {
    /// The texts by number. `nil` where the column is NULL.
    private(set) var texts: [String?] = []
    private var codes: [UInt64: Int] = [:]
    private var null: Int?
    /// The numbers of texts whose hash another text already has, which is very rare.
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
