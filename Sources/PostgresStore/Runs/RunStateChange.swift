import Model
import Store
import RelationalStore

/// Puts a run into a state, with what that means for its deliveries. For whoever has locked it, see ``RunOwner``.
struct RunStateChange {
    private let db: PostgresSession
    private let run: Int64
    private let now: Timestamp

    init(_ db: PostgresSession, _ run: Int64, now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    /// - Parameters:
    ///   - pausedBy: a person who asked for the pause: the run waits for them.
    ///   - halt: what a run met that pauses itself.
    func enter(
        _ state: RunState, reason: String?, actor: Actor, pausedBy: String? = nil, halt: RunHalt? = nil
    ) throws {
        switch state {
        case .finished: try requireDone()
        case .cancelled: try cancelRest()
        case .failed: try LeaseRecovery(db, run, now: now).closeAll()
        case .scheduled, .running, .paused, .missed: break
        }
        try note(state, reason: reason, actor: actor, pausedBy: pausedBy, halt: halt)
        if state.isFinal { try finish() }
    }

    /// Ends a run that was told to be cancelled.
    func finishCancelled() throws {
        try cancelRest()
        try finish()
        try RunOwner.open(db, run)
    }

    private func finish() throws {
        try db.execute("UPDATE run SET finished_at = coalesce(finished_at, $2) WHERE id = $1", run, now)
        try db.execute("DELETE FROM chunk WHERE run_id = $1", run)
    }

    /// The state alone.
    func note(
        _ state: RunState, reason: String?, actor: Actor, pausedBy: String? = nil, halt: RunHalt? = nil
    ) throws {
        let haltedBefore =
            try db.first("SELECT halted_at FROM run WHERE id = $1", run) { try $0.timestampOrNil(0) } ?? nil
        let isAutomatic = HaltRetry.isAutomatic(state, halt, pausedBy: pausedBy)
        try db.execute(
            """
            UPDATE run SET state = $2, state_reason = $3, paused_by = $4, halt = $5, halted_at = $6 WHERE id = $1
            """, run, state.rawValue, reason, pausedBy, halt?.rawValue, isAutomatic ? haltedBefore ?? now : nil)
        let event = try EventLog.record(
            db, kind: .entered(state, halt: halt), run: run, actor: actor, detail: reason ?? "", now: now)
        // The first pause of a series is news, the next failed attempt is not.
        if isAutomatic, haltedBefore != nil { return }
        try Outbox.add(state, halt: halt, of: run, reason: reason, pausedBy: pausedBy, event: event, now: now, db)
    }

    /// What is in flight becomes unknown, what waits suppressed(cancelled).
    private func cancelRest() throws {
        try LeaseRecovery(db, run, now: now).closeAll()
        try suppress(upTo: .max, after: 0)
    }

    /// Suppresses what waits among the next deliveries of a run that is cancelled; returns the last device looked at,
    /// nil at the end. Millions of them in one transaction would keep everybody else from settling.
    func suppressSlice(after device: Int64) throws -> Int64? {
        guard try RunOwner.alone(db, run).state == .cancelled,
            let last = try DeliveryTable(run: run).sliceEnd(after: device, db)
        else { return nil }
        try suppress(upTo: last, after: device)
        return last
    }

    private func suppress(upTo last: Int64, after device: Int64) throws {
        let count = try db.execute(
            """
            UPDATE \(DeliveryTable(run: run).name) SET
                state = \(DeliveryState.suppressed.code), status = 0,
                reason = '\(SuppressionReason.cancelled.rawValue)', not_before = NULL, changed_at = $3
            WHERE device_id > $1 AND device_id <= $2 AND state = \(DeliveryState.pending.code)
                AND device_id <> ALL ($4)
            """, device, last, now, try leasedDevices())
        var change = DeliveryCounts()
        change.pending = -count
        change.suppressed = count
        try RunRow.add(change, to: run, at: now, db)
    }

    /// Pending, and not waiting: their outcomes are still to come.
    private func leasedDevices() throws -> [Int64] {
        try LeaseRecovery(db, run, now: now).left().flatMap { $0.deliveries.map(\.device) }
    }

    private func requireDone() throws {
        let run = try RunProgress(db, run: self.run)
        guard run.isFrozen, run.counts.pending == 0, run.counts.leased == 0 else {
            throw StoreError.notFinished(run: self.run, pending: run.counts.pending, leased: run.counts.leased)
        }
    }
}
