import Model
import Store
import RelationalStore

/// The badge counts of the devices that pushes of a run reached, see ``BadgeRule``.
struct BadgeCount {
    private let db: PostgresSession
    private let run: Int64

    init(_ db: PostgresSession, run: Int64) {
        self.db = db
        self.run = run
    }

    /// Counts the badges. Locks devices in order of id, as every transaction does.
    func count(_ settlements: [Settlement]) throws {
        let counted = settlements.filter(BadgeRule.counts)
        guard !counted.isEmpty, let rule = try rule(), !rule.isIdle else { return }
        let devices = counted.map(\.device).sorted()
        if let common = rule.common { return try write(common, to: devices) }
        let variants = try db.all(
            "SELECT device_id, variant FROM \(DeliveryTable(run: run).name) WHERE device_id = ANY ($1)", devices
        ) { (device: try $0.int64(0), badge: rule.badge(ofVariant: try $0.intOrNil(1))) }
        _ = try db.rows("SELECT 1 FROM device WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", devices)
        for (badge, devices) in Dictionary(grouping: variants, by: \.badge) {
            if let badge { try write(badge, to: devices.map(\.device).sorted()) }
        }
    }

    private func rule() throws -> BadgeRule? {
        let hash = try db.first("SELECT definition_hash FROM run WHERE id = $1", run) { try $0.int64(0) }
        return try hash.map { try BadgeRule.rule(hash: $0) { try RunRow.require(db, run).definition } }
    }

    /// Counts in order of id. A range is cheaper, because its scan finds and locks each row as it changes it.
    private func write(_ badge: Template.Badge, to devices: [Int64]) throws {
        let (value, number) =
            switch badge {
            case .increment(let step): ("badge + $1", step)
            case .number(let number): ("$1::bigint", number)
            }
        guard let span = DeviceSpan(devices) else {
            try db.execute(
                """
                WITH counted AS MATERIALIZED (SELECT id FROM device WHERE id = ANY ($2) ORDER BY id FOR NO KEY UPDATE)
                UPDATE device SET badge = \(value) FROM counted WHERE device.id = counted.id
                """, number, devices)
            return
        }
        try db.execute(
            """
            UPDATE device SET badge = \(value)
            WHERE id BETWEEN $2 AND $3 AND get_byte($4, (id - $2)::integer) = 1
            """, number, span.first, span.last, span.marks)
    }
}
