import Model
import RelationalStore
import Store

/// What a run still has to send, and why it is not to be taken.
enum ClaimRow {
    static func owed(_ db: PostgresSession, _ run: Int64, at now: Timestamp) throws -> OwedDeliveries {
        try OwedDeliveries(RunRow.require(db, run), at: now) { try count(db, run, at: now) }
    }

    /// Nil: it may be taken. One that has become late is put on record as such. What its last owner left in flight
    /// stays that owner's, to be recovered as ever.
    static func refusal(
        _ db: PostgresSession, _ run: Int64, _ owed: OwedDeliveries, for actor: Actor, at now: Timestamp
    ) throws -> RunClaim? {
        let refusal = try owed.refusal(
            of: RunRow.require(db, run), StopRecord.read(db), at: now, after: ClockRecord(db).latestSteps()
        ) {
            try count(db, run, at: now)
        }
        switch refusal {
        case nil: return nil
        case .known(let claim): return claim
        case .foundLate(let reason):
            try RunStateChange(db, run, now: now).note(.paused, reason: reason, actor: actor, halt: .late)
            return .late(reason)
        }
    }

    private static func count(_ db: PostgresSession, _ run: Int64, at now: Timestamp) throws -> LatePolicy.Owed? {
        let heldUntil = StageGate.heldUntil(try RunRow.require(db, run), try PostgresStageBook.records(db, run: run))
        return try db.first(
            """
            SELECT count(*) FILTER (WHERE not_before IS NULL OR not_before >= \(NotBefore.heldFrom)),
                count(*) FILTER (WHERE not_before <= $1), min(not_before),
                count(*) FILTER (WHERE not_before <= $1 AND leases > 0)
            FROM \(DeliveryTable(run: run).name) WHERE state = \(DeliveryState.pending.code)
            """, now
        ) { row in
            let (atOnce, overdue) = (try row.int(0), try row.int(1))
            return LatePolicy.Owed(
                due: atOnce + overdue, firstDue: atOnce > 0 ? nil : NotBefore.moment(try row.int64OrNil(2)),
                heldUntil: heldUntil, returned: try row.int(3))
        }
    }
}
