import Model
import Store
import RelationalStore

/// The deliveries of a run that APNs found ``TokenVerdict/mismatched``.
struct Mismatched {
    private let db: PostgresSession
    private let run: Int64
    private let table: DeliveryTable
    private let reasons = TokenVerdict.mismatched.reasons

    init(_ db: PostgresSession, run: Int64) {
        self.db = db
        self.run = run
        table = DeliveryTable(run: run)
    }

    func counts() throws -> [MismatchCount] {
        try db.all(
            """
            SELECT environment, count(*), count(*) FILTER (WHERE reason = ANY ($1)),
                count(*) FILTER (WHERE reason = ANY ($2))
            FROM \(table.name)
            WHERE state IN (\(SQLConstants.list([.accepted, .rejected] as [DeliveryState])))
            GROUP BY environment ORDER BY environment
            """, reasons, TokenVerdict.gone.reasons
        ) { row in
            MismatchCount(
                environment: PushEnvironment(code: try row.int64(0)), all: try row.int(1), wrong: try row.int(2),
                gone: try row.int(3))
        }
    }

    /// How many, and the last device looked at; nil at the end.
    func suspendSlice(
        _ environment: PushEnvironment, after device: Int64, now: Timestamp
    ) throws -> (count: Int, last: Int64?) {
        guard let last = try DeliverySlice.end(db, run: run, after: device) else { return (0, nil) }
        let suspects = try suspects(environment, after: device, upTo: last)
        guard !suspects.isEmpty else { return (0, last) }
        try db.execute(
            """
            UPDATE device SET status = \(DeviceStatus.suspended.code), status_reason = given.reason, status_at = $3
            FROM unnest($1::bigint[], $2::text[]) AS given (device, reason) WHERE id = given.device
            """, suspects.map(\.device), suspects.map(\.reason), try db.moment(now))
        try db.execute(
            "UPDATE run SET devices_suspended = devices_suspended + $2 WHERE id = $1", run, suspects.count)
        return (suspects.count, last)
    }

    /// Active devices for which the verdict holds, locked in their order.
    private func suspects(
        _ environment: PushEnvironment, after device: Int64, upTo last: Int64
    ) throws -> [(device: Int64, reason: String)] {
        let rows = try db.rows(
            """
            SELECT device.id, delivery.reason, delivery.generation, delivery.changed_at, device.token_generation,
                device.registered_at, (SELECT heard_at FROM token_heard WHERE token_heard.device_id = device.id),
                device.last_seen_at
            FROM \(table.name) AS delivery JOIN device ON device.id = delivery.device_id
            WHERE delivery.device_id > $1 AND delivery.device_id <= $2 AND delivery.environment = $3
                -- A device of another environment now says nothing about its token.
                AND device.environment = delivery.environment
                AND delivery.state = \(DeliveryState.rejected.code) AND delivery.reason = ANY ($4)
                AND device.status = \(DeviceStatus.active.code)
            ORDER BY device.id FOR NO KEY UPDATE OF device
            """, device, last, environment.code, reasons)
        return try rows.compactMap { row in
            let holds = TokenVerdict.holds(
                generation: try row.int(2), at: try row.timestamp(3),
                for: TokenRegistration(
                    generation: try row.int(4), registeredAt: try row.timestampOrNil(5),
                    heardAt: try row.timestampOrNil(6), lastSeenAt: try row.timestampOrNil(7)))
            return holds ? (try row.int64(0), try row.text(1)) : nil
        }
    }

    /// How many, and the last device looked at; nil at the end. They wait, and their time has come: the chunks of fresh ones
    /// are behind them.
    func reopenSlice(
        _ environment: PushEnvironment, after device: Int64, now: Timestamp
    ) throws -> (count: Int, last: Int64?) {
        guard let last = try DeliverySlice.end(db, run: run, after: device) else { return (0, nil) }
        let now = try db.moment(now)
        let count = try db.execute(
            """
            UPDATE \(table.name) SET state = \(DeliveryState.pending.code), not_before = $5, changed_at = $5
            WHERE device_id > $1 AND device_id <= $2 AND environment = $3
                AND state = \(DeliveryState.rejected.code) AND reason = ANY ($4)
            """, device, last, environment.code, reasons, now)
        var change = DeliveryCounts()
        change.rejected = -count
        change.pending = count
        if count > 0 {
            try RunStages.lock(db, run: run)
            let record = try RunRow.require(db, run)
            let book = RunStages(db, record, actor: Actor(record.owner ?? ""))
            try StageGate(record, book, at: now)?.recount()
            try OutcomeSummary(db, run).drop()
        }
        try RunRow.add(change, to: run, at: now, db)
        return (count, last)
    }
}
