import Model
import Store

extension DeliveryTally {
    /// Counts the deliveries of a run in one pass over its rows.
    init<Session: SQLSession>(_ db: Session, run: Int64) throws {
        self.init()
        let leased = try Self.leased(db, run: run)
        try db.each(
            """
            SELECT device_id, environment, locale_index, state, status, reason, attempt, doubts, variant, leases, generation,
                changed_at, profile, wave, stage
            FROM \(Session.dialect.deliveries(of: run)) WHERE \(Session.dialect.isOf(parameter: 1))
            """, values: [run]
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
        finish(try Self.texts(of: profiles, db))
    }

    private static func texts<Session: SQLSession>(
        of profiles: Set<Int64>, _ db: Session
    ) throws -> [Int64: DeliveryProfile] {
        let rows = try db.all(
            """
            SELECT id, locale, app_version, time_zone, country FROM delivery_profile
            WHERE id \(Session.dialect.isAny(1))
            """, Array(profiles)
        ) { row in
            (
                try row.int64(0),
                DeliveryProfile(
                    locale: try row.text(1), appVersion: try row.text(2), timeZone: try row.text(3),
                    country: try row.text(4))
            )
        }
        return Dictionary(rows) { first, _ in first }
    }

    /// Returns the lease number of each device with a delivery in flight.
    static func leased(_ db: some SQLSession, run: Int64) throws -> [Int64: Int] {
        var leased: [Int64: Int] = [:]
        for entries in try db.all("SELECT entries FROM lease WHERE run_id = $1", run, read: { try $0.bytes(0) }) {
            for entry in LeaseEntry.unpack(entries) {
                leased[entry.device] = max(entry.number, leased[entry.device] ?? 0)
            }
        }
        return leased
    }
}
