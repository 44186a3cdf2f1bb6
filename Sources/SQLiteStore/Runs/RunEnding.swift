import GRDB
import Store
import Model

/// Puts a run into a state, with what that means for its deliveries.
struct RunEnding {
    private let db: Database
    private let run: Int64
    private let now: Timestamp

    init(_ db: Database, _ run: Int64, now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    /// - Parameter pausedBy: a person who asked for the pause: the run waits for them.
    func enter(_ state: RunState, reason: String?, actor: Actor, pausedBy: String? = nil) throws {
        switch state {
        case .finished: try requireDone()
        case .cancelled: try cancelRest()
        case .failed: _ = try LeaseRecovery(db, run, now: now).closeAll()
        case .scheduled, .running, .paused, .missed: break
        }
        try note(state, reason: reason, actor: actor, pausedBy: pausedBy)
        if state.isFinal { try finish() }
    }

    /// Ends a run that was told to be cancelled.
    func finishCancelled() throws {
        try cancelRest()
        try finish()
        try RunLock.open(db, run)
    }

    private func finish() throws {
        try db.execute(
            sql: "UPDATE run SET finished_at = coalesce(finished_at, :now) WHERE id = :run",
            arguments: ["run": run, "now": now.milliseconds])
    }

    /// The state alone.
    func note(_ state: RunState, reason: String?, actor: Actor, pausedBy: String? = nil) throws {
        try db.execute(
            sql: "UPDATE run SET state = :state, state_reason = :reason, paused_by = :paused_by WHERE id = :run",
            arguments: ["run": run, "state": state.rawValue, "reason": reason, "paused_by": pausedBy])
        try EventLog.record(
            db, kind: "run_\(state.rawValue)", run: run, actor: actor, detail: reason ?? "", now: now)
        try Outbox.add(
            state, of: run, reason: reason, pausedBy: pausedBy, event: db.lastInsertedRowID, now: now, db)
    }

    /// What is in flight becomes unknown, what waits suppressed(cancelled).
    private func cancelRest() throws {
        _ = try LeaseRecovery(db, run, now: now).closeAll()
        try db.execute(
            sql: """
                UPDATE delivery SET state = 4, status = 0, reason = :reason, not_before = NULL, changed_at = :now
                WHERE run_id = :run AND state = 0
                """,
            arguments: ["run": run, "now": now.milliseconds, "reason": SuppressionReason.cancelled.rawValue])
        var change = DeliveryCounts()
        change.pending = -db.changesCount
        change.suppressed = db.changesCount
        try RunRow.add(change, to: run, db)
    }

    private func requireDone() throws {
        let run = try RunRow.require(db, self.run)
        guard run.isFrozen, run.counts.pending == 0, run.counts.leased == 0 else {
            throw StoreError.notFinished(run: run.id, pending: run.counts.pending, leased: run.counts.leased)
        }
    }
}
