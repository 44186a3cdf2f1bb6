import GRDB
import Model
import Store

extension DeliveryTally {
    init(_ db: Database, run: Int64) throws {
        self.init()
        let leased = try Self.leased(db, run: run)
        let rows = try RowStatement(
            db,
            """
            SELECT device_id, environment, locale_index, state, status, reason, attempt, doubts, variant, leases, generation,
                changed_at, profile, wave, stage
            FROM delivery WHERE run_id = :run
            """)
        defer { rows.reset() }
        try rows.bind(run, rows.parameter(":run"))
        while try rows.step() {
            let (device, state) = (rows.int64(0), rows.int64(3))
            add(
                Row(
                    device: device, environment: rows.int64(1), state: state, status: rows.int64(4),
                    attempt: rows.int64(6), doubts: rows.int64(7), generation: rows.int64(10),
                    changedAt: rows.int64(11), variant: rows.int64OrNil(8), localeIndex: rows.int64OrNil(2),
                    reason: rows.text(5),
                    isLeased: state == DeliveryState.pending.code && leased[device] == rows.int(9) + 1,
                    profile: rows.int64OrNil(12), wave: rows.int64OrNil(13), stage: rows.int64OrNil(14)))
        }
        finish(try DeliveryProfiles(db).texts(of: profiles))
    }

    /// Device to the number of its lease.
    static func leased(_ db: Database, run: Int64) throws -> [Int64: Int] {
        let rows = try RowStatement(db, "SELECT entries FROM lease WHERE run_id = :run")
        defer { rows.reset() }
        try rows.bind(run, rows.parameter(":run"))
        var leased: [Int64: Int] = [:]
        while try rows.step() {
            for entry in LeaseEntry.unpack(rows.bytes(0)) {
                leased[entry.device] = max(entry.number, leased[entry.device] ?? 0)
            }
        }
        return leased
    }
}
