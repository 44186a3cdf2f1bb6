import Model
import Store

/// Why a run that nobody has is not to be taken.
struct ClaimRefusal {
    private let db: PostgresSession
    private let run: Run
    private let owed: OwedDeliveries

    /// - Parameter owed: as it was found before the transaction.
    init(_ db: PostgresSession, _ run: Int64, _ owed: OwedDeliveries) throws {
        self.db = db
        self.run = try RunRow.require(db, run)
        self.owed = owed
    }

    /// Nil: it may be taken. One that has become late is put on record as such. What its last owner left in flight
    /// stays that owner's, to be recovered as ever.
    func find(for actor: Actor, at now: Timestamp) throws -> RunClaim? {
        if run.state == .paused, let pause { return pause }
        let lateness = try LatePolicy(run).lateness(at: now) {
            try owed.isOf(run) ? owed.owed : OwedDeliveries(db, run.id, at: now).owed
        }
        guard let lateness else { return nil }
        let reason = lateness.reason(run: run.id)
        try RunStateChange(db, run.id, now: now).note(.paused, reason: reason, actor: actor, halt: .late)
        return .late(reason)
    }

    private var pause: RunClaim? {
        if let person = run.pausedBy { return .paused(by: person, reason: run.stateReason) }
        let reason = run.stateReason ?? "no reason given"
        return switch run.halt {
        case .breaker: .breakerOpen(reason)
        case .late: .late(reason)
        case .unreachable, .credential, nil: nil
        }
    }
}

/// What a run still has to send, counted where ``LatePolicy`` asks for it.
struct OwedDeliveries: Sendable {
    private let run: Run
    private(set) var owed: LatePolicy.Owed?

    init(_ db: PostgresSession, _ run: Int64, at now: Timestamp) throws {
        let run = try RunRow.require(db, run)
        self.run = run
        var counted: LatePolicy.Owed?
        _ = try LatePolicy(run).lateness(at: now) {
            counted = try Self.count(db, run, at: now)
            return counted
        }
        owed = counted
    }

    /// Whether nothing has been sent or settled since.
    func isOf(_ run: Run) -> Bool { run.counts == self.run.counts && run.heartbeatAt == self.run.heartbeatAt }

    private static func count(_ db: PostgresSession, _ run: Run, at now: Timestamp) throws -> LatePolicy.Owed? {
        guard run.counts.pending + run.counts.leased > 0 else { return nil }
        return try db.first(
            """
            SELECT count(*) FILTER (WHERE not_before IS NULL OR not_before = \(DeliveryTable.inFlight)),
                count(*) FILTER (WHERE not_before <= $1), min(not_before)
            FROM \(DeliveryTable(run: run.id).name) WHERE state = \(DeliveryState.pending.code)
            """, now
        ) { row in
            let (atOnce, overdue) = (try row.int(0), try row.int(1))
            return LatePolicy.Owed(due: atOnce + overdue, firstDue: atOnce > 0 ? nil : try row.timestampOrNil(2))
        }
    }
}
