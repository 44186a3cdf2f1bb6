import Model
import Store

/// The deliveries of a run that APNs found ``TokenVerdict/mismatched``.
package struct MismatchedDeliveries<Session: SQLSession> {
    private let db: Session
    private let run: Int64
    private let reasons = TokenVerdict.mismatched.reasons

    package init(_ db: Session, run: Int64) {
        self.db = db
        self.run = run
    }

    private var dialect: SQLDialect { Session.dialect }

    /// Returns the counts by environment. Returns none if no delivery of the run is rejected.
    func counts() throws -> [MismatchCount] {
        // A run without rejected deliveries would be read as a whole for nothing.
        let rejected = try db.first("SELECT rejected FROM run WHERE id = $1", run) { try $0.int64(0) } ?? 0
        guard rejected > 0, try db.hasDeliveries(of: run) else { return [] }
        return try db.all(
            .once(
                """
                SELECT environment, count(*), count(*) FILTER (WHERE reason \(dialect.isAny(1))),
                    count(*) FILTER (WHERE reason \(dialect.isAny(2)))
                FROM \(dialect.deliveries(of: run))
                WHERE \(dialect.isOf(run: run))
                    AND state IN (\(SQLConstants.list([.accepted, .rejected] as [DeliveryState])))
                GROUP BY environment ORDER BY environment
                """), values: [reasons, TokenVerdict.gone.reasons]
        ) { row in
            MismatchCount(
                environment: PushEnvironment(code: try row.int64(0)), all: try row.int(1), wrong: try row.int(2),
                gone: try row.int(3))
        }
    }

    /// Suspends the active devices whose verdict still holds.
    ///
    /// - Returns: the number of suspended devices, and the last device read; `nil` at the end.
    func suspendSlice(
        _ environment: PushEnvironment, after device: Int64, now: Timestamp
    ) throws -> (count: Int, last: Int64?) {
        guard let last = try DeliverySlice.lastDevice(db, run: run, after: device) else { return (0, nil) }
        let suspects = try DeviceVerdicts(db).standing(
            """
            SELECT device.id, delivery.reason, delivery.generation, delivery.changed_at,
                \(DeviceVerdicts<Session>.columns)
            FROM \(dialect.deliveries(of: run, as: "delivery")) JOIN device ON device.id = delivery.device_id
            WHERE \(dialect.isOf(run: run, "delivery")) AND delivery.device_id > $1 AND delivery.device_id <= $2
                AND delivery.environment = $3
                -- A device of another environment now says nothing about its token.
                AND device.environment = delivery.environment
                AND delivery.state = \(DeliveryState.rejected.code) AND delivery.reason \(dialect.isAny(4))
                AND device.status = \(DeviceStatus.active.code)
            ORDER BY device.id
            """, values: [device, last, environment.code, reasons])
        guard !suspects.isEmpty else { return (0, last) }
        let moment = try db.moment(now)
        for (reason, found) in Dictionary(grouping: suspects, by: \.reason) {
            // Do not keep the statement, because it would also keep its long list.
            try db.execute(
                .once(
                    """
                    UPDATE device SET status = \(DeviceStatus.suspended.code), status_reason = $2, status_at = $3
                    WHERE id \(dialect.isAny(1))
                    """), found.map(\.device), reason, moment)
        }
        try db.execute(
            "UPDATE run SET devices_suspended = devices_suspended + $2 WHERE id = $1", run, suspects.count)
        return (suspects.count, last)
    }

    /// Makes deliveries pending again. PostgreSQL finds fresh deliveries by their chunks, and the chunks of these
    /// deliveries are finished. There, they therefore become waiting deliveries that are due now.
    ///
    /// - Returns: the number of reopened deliveries, and the last device read; `nil` at the end.
    func reopenSlice(
        _ environment: PushEnvironment, after device: Int64, now: Timestamp
    ) throws -> (count: Int, last: Int64?) {
        guard let last = try DeliverySlice.lastDevice(db, run: run, after: device) else { return (0, nil) }
        let now = try db.moment(now)
        // A delivery of an early stage is never fresh.
        let notBefore = dialect.word("CASE WHEN stage IS NULL THEN NULL ELSE $5 END", "$5")
        let count = try db.execute(
            .once(
                """
                UPDATE \(dialect.deliveries(of: run)) SET
                    state = \(DeliveryState.pending.code), not_before = \(notBefore), changed_at = $5
                WHERE \(dialect.isOf(run: run)) AND device_id > $1 AND device_id <= $2 AND environment = $3
                    AND state = \(DeliveryState.rejected.code) AND reason \(dialect.isAny(4))
                """), values: [device, last, environment.code, reasons, now])
        if count > 0 {
            try RunStages.lock(db, run: run)
            try StageController.of(run, at: now, db)?.recount()
            try OutcomeSummary(db, run).drop()
        }
        var change = DeliveryCounts()
        change.rejected = -count
        change.pending = count
        try RunRow.add(change, to: run, at: now, db)
        return (count, last)
    }
}
