package import Model
package import Store

/// A state change of a run and its effect on the deliveries. The transaction has locked the run; see ``RunOwner``.
package struct RunStateChange<Session: SQLSession> {
    private let db: Session
    private let run: Int64
    private let now: Timestamp

    package init(_ db: Session, _ run: Int64, now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    /// Changes the run's state.
    ///
    /// - Parameters:
    ///   - pausedBy: the person who paused the run, and for whom it waits.
    ///   - halt: the halt of a run that pauses itself.
    package func enter(
        _ state: RunState, reason: String?, actor: Actor, pausedBy: String? = nil, halt: RunHalt? = nil
    ) throws {
        switch state {
        case .finished: try requireDone()
        case .cancelled: try cancelRest()
        case .failed: try db.closeLeases(of: run, now: now)
        case .scheduled, .running, .paused, .missed: break
        }
        try note(state, reason: reason, actor: actor, pausedBy: pausedBy, halt: halt)
        if state.isFinal { try finish() }
    }

    /// Ends a run that a person has cancelled.
    package func finishCancelled() throws {
        try cancelRest()
        try finish()
        try RunOwner.open(db, run)
    }

    private func finish() throws {
        try db.execute("UPDATE run SET finished_at = coalesce(finished_at, $2) WHERE id = $1", run, now)
        try db.ended(run: run)
    }

    /// Records and announces the state, but does not change the deliveries. The reason of a pause that a person ends
    /// also says that the run comes from a restored backup, if it does.
    package func note(
        _ state: RunState, reason: String?, actor: Actor, pausedBy: String? = nil, halt: RunHalt? = nil
    ) throws {
        let known = try db.first("SELECT halted_at, restored FROM run WHERE id = $1", run) { row in
            (haltedAt: try row.timestampOrNil(0), restored: try row.textOrNil(1))
        }
        let haltedBefore = known?.haltedAt
        let isAutomatic = HaltRetry.isAutomatic(state, halt, pausedBy: pausedBy)
        var reason = reason
        if state == .paused, !isAutomatic, halt != .restored, let restored = known?.restored {
            let restored: RestoredRun = try StoredJSON.value(restored)
            reason = restored.reason(reason)
        }
        try db.execute(
            """
            UPDATE run SET state = $2, state_reason = $3, paused_by = $4, halt = $5, halted_at = $6 WHERE id = $1
            """, run, state.rawValue, reason, pausedBy, halt?.rawValue, isAutomatic ? haltedBefore ?? now : nil)
        let event = try db.record(.entered(state, halt: halt), run: run, by: actor, reason ?? "", now: now)
        // Announce only the first automatic pause of a series, not the pauses after later failed attempts.
        if isAutomatic, haltedBefore != nil { return }
        try Outbox.add(state, halt: halt, of: run, reason: reason, pausedBy: pausedBy, event: event, now: now, db)
    }

    /// What a restore recorded of the run. `nil` if the run was not open in a restored backup.
    package func restored() throws -> RestoredRun? {
        let text = try db.first("SELECT restored FROM run WHERE id = $1", run) { try $0.textOrNil(0) } ?? nil
        return try text.map { try StoredJSON.value($0) }
    }

    private func write(_ restored: RestoredRun) throws {
        try db.execute("UPDATE run SET restored = $2 WHERE id = $1", run, try StoredJSON.text(restored))
    }

    /// Pauses an open run of a restored backup until a person confirms the gap.
    package func hold(_ found: Run, _ policy: RestorePolicy, by actor: Actor) throws {
        guard let hold = policy.hold(found, known: try restored()) else { return }
        try write(hold.restored)
        try note(.paused, reason: hold.reason, actor: actor, halt: .restored)
    }

    /// Records that a person knows of the gap, and returns the run to the pause that it had in the backup. Returns
    /// `false` if the run had none, so that it continues.
    func confirmRestore(by actor: Actor, _ reason: String?) throws -> Bool {
        guard var restored = try restored(), let earlier = restored.earlier else { return false }
        restored.earlier = nil
        try write(restored)
        try db.record(.restoreConfirmed, run: run, by: actor, restored.reason(reason), now: now)
        try note(
            .paused, reason: earlier.reason, actor: actor, pausedBy: earlier.pausedBy, halt: earlier.halt)
        return true
    }

    /// Sets deliveries in flight to unknown and pending deliveries to suppressed(cancelled).
    private func cancelRest() throws {
        try db.closeLeases(of: run, now: now)
        try suppress(upTo: .max, after: 0)
    }

    /// Suppresses pending deliveries among the next slice of a cancelled run. Returns the last device read, or `nil`
    /// at the end. All of them in one transaction would block all settlements, because there may be millions.
    package func suppressSlice(after device: Int64) throws -> Int64? {
        guard try RunOwner.alone(db, run).state == .cancelled,
            let last = try DeliverySlice.lastDevice(db, run: run, after: device)
        else { return nil }
        try suppress(upTo: last, after: device)
        return last
    }

    /// Suppresses pending deliveries, except those in a lease, because their outcomes are still expected.
    private func suppress(upTo last: Int64, after device: Int64) throws {
        let count = try db.execute(
            """
            UPDATE \(Session.dialect.deliveries(of: run)) SET
                state = \(DeliveryState.suppressed.code), status = 0,
                reason = '\(SuppressionReason.cancelled.rawValue)', not_before = NULL, changed_at = $4
            WHERE \(Session.dialect.isOf(parameter: 1)) AND device_id > $2 AND device_id <= $3
                AND state = \(DeliveryState.pending.code) AND NOT (device_id \(Session.dialect.isAny(5)))
            """, run, device, last, now,
            try db.abandonedLeases(of: run).flatMap { $0.deliveries.map(\.device) })
        var change = DeliveryCounts()
        change.pending = -count
        change.suppressed = count
        try RunRow.add(change, to: run, at: now, db)
    }

    private func requireDone() throws {
        let progress = try RunProgress(db, run: run)
        guard progress.isFrozen, progress.counts.pending == 0, progress.counts.leased == 0 else {
            throw StoreError.notFinished(
                run: run, pending: progress.counts.pending, leased: progress.counts.leased)
        }
    }
}

/// The deliveries of a run in order of device, in slices of limited size.
package enum DeliverySlice {
    /// The maximum number of deliveries per slice. Writing a slice takes a fraction of a second.
    private static let countMax = 20_000

    /// Returns the last device of the next slice; `nil` if there is none.
    package static func lastDevice<Session: SQLSession>(_ db: Session, run: Int64, after device: Int64) throws -> Int64?
    {
        try db.first(
            """
            SELECT max(device_id) FROM (
                SELECT device_id FROM \(Session.dialect.deliveries(of: run))
                WHERE \(Session.dialect.isOf(parameter: 1)) AND device_id > $2 ORDER BY device_id LIMIT \(countMax)
            ) AS slice
            """, run, device
        ) { try $0.int64OrNil(0) } ?? nil
    }
}
