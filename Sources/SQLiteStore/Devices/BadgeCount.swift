import GRDB
import Model
import RelationalStore
import Store

/// The badge counts of the devices that pushes of a run reached; see ``BadgeRule``.
struct BadgeCount {
    private let db: Database
    private let run: Int64
    private let rule: BadgeRule

    /// Returns `nil` if the run's pushes change no badge count.
    init?(_ db: Database, run: Int64) throws {
        let hash = try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT definition_hash FROM run WHERE id = :run"), arguments: ["run": run])
        guard let hash else { return nil }
        rule = try BadgeRule.rule(hash: hash) { try RunRow.require(db, run).definition }
        guard !rule.isIdle else { return nil }
        self.db = db
        self.run = run
    }

    func count(_ settlement: Settlement) throws {
        guard BadgeRule.counts(settlement) else { return }
        switch try rule.common ?? rule.badge(ofVariant: variant(of: settlement.device)) {
        case .increment(let step): try write("badge + :number", step, to: settlement.device)
        case .number(let number): try write(":number", number, to: settlement.device)
        case nil: break
        }
    }

    private func variant(of device: Int64) throws -> Int? {
        try Int.fetchOne(
            db.cachedStatement(sql: "SELECT variant FROM delivery WHERE run_id = :run AND device_id = :device"),
            arguments: ["run": run, "device": device])
    }

    private func write(_ value: String, _ number: Int, to device: Int64) throws {
        let update = try RowStatement(db, "UPDATE device SET badge = \(value) WHERE id = :device")
        try update.bind(Int64(number), update.parameter(":number"))
        try update.bind(device, update.parameter(":device"))
        try update.run()
    }
}
