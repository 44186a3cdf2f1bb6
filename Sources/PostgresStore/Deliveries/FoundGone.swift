import Model
import Store
import RelationalStore

/// The devices that APNs found gone in a run, until its end decides what becomes of them.
struct FoundGone {
    /// Written in a fraction of a second.
    private static let sliceCount = 10_000

    private let db: PostgresSession
    private let run: Int64

    init(_ db: PostgresSession, run: Int64) {
        self.db = db
        self.run = run
    }

    /// In order of device, as everybody does.
    func note(_ found: [(settlement: Settlement, since: Timestamp)]) throws {
        guard !found.isEmpty else { return }
        let found = found.sorted { $0.settlement.device < $1.settlement.device }
        try db.execute(
            """
            INSERT INTO found_gone (run_id, device_id, generation, since, reason)
            SELECT $1::bigint, device, generation, since, reason
            FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[])
                AS given (device, generation, since, reason)
            ON CONFLICT (run_id, device_id) DO UPDATE SET
                generation = excluded.generation, since = excluded.since, reason = excluded.reason
            """, run, found.map(\.settlement.device), found.map(\.settlement.generation), found.map(\.since),
            found.map(\.settlement.reason))
    }

    /// Marks those for which the verdict still holds, and forgets the slice. Returns how many, and the last device
    /// looked at; `nil` at the end.
    func markSlice(after device: Int64) throws -> (count: Int, last: Int64?) {
        let end = try db.first(
            """
            SELECT max(device_id) FROM (
                SELECT device_id FROM found_gone WHERE run_id = $1 AND device_id > $2
                ORDER BY device_id LIMIT \(Self.sliceCount)
            ) AS slice
            """, run, device
        ) { try $0.int64OrNil(0) }
        guard let last = end ?? nil else { return (0, nil) }
        let devices = try standing(after: device, upTo: last)
        try db.execute(
            """
            UPDATE device SET status = \(DeviceStatus.gone.code), status_reason = found.reason, status_at = found.since
            FROM found_gone AS found
            WHERE found.run_id = $1 AND found.device_id = device.id AND device.id = ANY ($2)
            """, run, devices)
        try db.execute("UPDATE run SET devices_gone = devices_gone + $2 WHERE id = $1", run, devices.count)
        try db.execute("DELETE FROM found_gone WHERE run_id = $1 AND device_id <= $2", run, last)
        return (devices.count, last)
    }

    /// Devices for which the verdict holds, locked in their order.
    private func standing(after device: Int64, upTo last: Int64) throws -> [Int64] {
        try db.rows(
            """
            SELECT device.id, found.generation, found.since, device.token_generation, device.registered_at,
                (SELECT heard_at FROM token_heard WHERE token_heard.device_id = device.id), device.last_seen_at
            FROM found_gone AS found JOIN device ON device.id = found.device_id
            WHERE found.run_id = $1 AND found.device_id > $2 AND found.device_id <= $3
                AND device.status <> \(DeviceStatus.gone.code)
            ORDER BY device.id FOR NO KEY UPDATE OF device
            """, run, device, last
        ).compactMap { row in
            let holds = TokenVerdict.holds(
                generation: try row.int(1), at: try row.timestamp(2),
                for: TokenRegistration(
                    generation: try row.int(3), registeredAt: try row.timestampOrNil(4),
                    heardAt: try row.timestampOrNil(5), lastSeenAt: try row.timestampOrNil(6)))
            return try holds ? row.int64(0) : nil
        }
    }

    func forget() throws { try db.execute("DELETE FROM found_gone WHERE run_id = $1", run) }
}

/// Gives the copy of users whose device is gone to another one of theirs, in the transaction of `db`.
struct UserFallbacks {
    private let db: PostgresSession
    private let run: Int64
    private let now: Timestamp

    init(_ db: PostgresSession, run: Int64, at now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    /// Returns how many deliveries wait again that were suppressed.
    ///
    /// - Parameter gone: the devices whose delivery has just ended because they are gone.
    func replace(_ gone: [Int64]) throws -> Int {
        guard !gone.isEmpty, let fallback = UserFallback(try RunRow.require(db, run)) else { return 0 }
        let users = try devicesOfUsers(of: gone)
        let next = Set(users.values.compactMap { fallback.next(of: $0) }).sorted()
        guard !next.isEmpty else { return 0 }
        // Another transaction may have replaced the device of the same user meanwhile.
        return try db.execute(
            """
            UPDATE \(DeliveryTable(run: run).name) SET
                state = \(DeliveryState.pending.code), reason = NULL, not_before = $2, changed_at = $3
            WHERE device_id = ANY ($1) AND state = \(DeliveryState.suppressed.code)
                AND reason = '\(SuppressionReason.duplicateOfUser.rawValue)'
            """, next, fallback.notBefore(at: now), now)
    }

    /// By device that is gone.
    private func devicesOfUsers(of gone: [Int64]) throws -> [Int64: [UserFallback.Candidate]] {
        let rows = try db.rows(
            """
            SELECT given.device, device.id, device.status, device.alerts_allowed, \(AudienceSelection.seenSQL),
                delivery.state, delivery.status, delivery.reason
            FROM unnest($1::bigint[]) AS given (device)
            JOIN device AS gone ON gone.id = given.device AND gone.user_id <> ''
            CROSS JOIN LATERAL (
                SELECT * FROM device AS own
                WHERE own.user_id = gone.user_id AND own.topic_id = gone.topic_id
                LIMIT \(UserFallback.devicesMax + 1)
            ) AS device
            LEFT JOIN \(DeliveryTable(run: run).name) AS delivery ON delivery.device_id = device.id
            """, gone)
        var users: [Int64: [UserFallback.Candidate]] = [:]
        for row in rows {
            users[try row.int64(0), default: []].append(
                UserFallback.Candidate(
                    device: try row.int64(1), status: DeviceStatus(code: try row.int64(2)),
                    alertsAllowed: try row.boolOrNil(3) ?? true, seenAt: try row.int64(4),
                    state: try row.int64OrNil(5).map(DeliveryState.init(code:)), answer: try row.intOrNil(6) ?? 0,
                    reason: try row.textOrNil(7)))
        }
        return users
    }
}

extension DeliveryCounts {
    /// Deliveries that were suppressed wait again.
    mutating func reopen(_ count: Int) {
        suppressed -= count
        pending += count
    }
}
