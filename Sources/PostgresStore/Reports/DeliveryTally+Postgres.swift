import Model
import Store
import RelationalStore

extension DeliveryTally {
    /// Counts the deliveries of a run in one pass over its rows.
    init(_ db: PostgresSession, run: Int64) throws {
        self.init()
        let leased = try Self.leased(db, run: run)
        try db.each(
            """
            SELECT device_id, environment, locale_index, state, status, reason, attempt, doubts, variant, leases, generation,
                changed_at, profile, wave, stage
            FROM \(DeliveryTable(run: run).name)
            """
        ) { row in
            let (device, state) = (try row.int64(0), try row.int64(3))
            add(
                Row(
                    device: device, environment: try row.int64(1), state: state, status: try row.int64(4),
                    attempt: try row.int64(6), doubts: try row.int64(7), generation: try row.int64(10),
                    changedAt: try row.int64(11), variant: try row.int64OrNil(8), localeIndex: try row.int64OrNil(2),
                    reason: try row.textOrNil(5),
                    isLeased: try state == DeliveryState.pending.code && leased[device] == row.int(9) + 1,
                    profile: try row.int64OrNil(12), wave: try row.int64OrNil(13), stage: try row.int64OrNil(14)))
        }
        finish(try DeliveryProfiles(db).texts(of: profiles))
    }

    /// Device to the number of its lease.
    static func leased(_ db: PostgresSession, run: Int64) throws -> [Int64: Int] {
        var leased: [Int64: Int] = [:]
        for row in try db.rows("SELECT entries FROM lease WHERE run_id = $1", run) {
            for entry in LeaseEntry.unpack(try row.bytes(0)) {
                leased[entry.device] = max(entry.number, leased[entry.device] ?? 0)
            }
        }
        return leased
    }
}
