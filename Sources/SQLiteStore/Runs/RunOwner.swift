import GRDB
import Model
import RelationalStore
import Store

/// Who sends a run, as its row says, and in which state it is.
struct RunOwner {
    let run: Int64
    let state: RunState
    let owner: String?
    let heartbeat: Timestamp?
    /// The person a paused run waits for; nil where it paused itself.
    let pausedBy: String?
    /// What a paused run met.
    let halt: RunHalt?
    let reason: String?

    init(_ db: Database, _ run: Int64) throws {
        let row = try Row.fetchOne(
            db.cachedStatement(
                sql: "SELECT state, owner, heartbeat_at, paused_by, halt, state_reason FROM run WHERE id = :run"),
            arguments: ["run": run])
        guard let row, let state = RunState(rawValue: row[0]) else { throw StoreError.noSuchRun(run) }
        self.run = run
        self.state = state
        owner = row[1]
        heartbeat = Timestamp(stored: row[2])
        pausedBy = row[3]
        halt = (row[4] as String?).flatMap(RunHalt.init)
        reason = row[5]
    }

    /// The owner, unless it is `other` or gone.
    func holder(apartFrom other: String?, isAlive: OwnerLiveness.IsAlive) -> String? {
        guard let owner, owner != other, isAlive(owner) else { return nil }
        return owner
    }

    func require(_ expected: String) throws {
        guard owner == expected else { throw StoreError.lostClaim(run: run, holder: owner) }
    }

    func take(_ db: Database, by owner: Actor, now: Timestamp) throws {
        try db.execute(
            sql: """
                UPDATE run SET
                    owner = :owner, heartbeat_at = :now, state = :running, state_reason = NULL, paused_by = NULL,
                    halt = NULL, started_at = coalesce(started_at, :now),
                    halted_at = CASE WHEN state = :paused THEN halted_at END
                WHERE id = :run
                """,
            arguments: [
                "run": run, "owner": owner.name, "now": now.milliseconds, "running": RunState.running.rawValue,
                "paused": RunState.paused.rawValue,
            ])
        let former = self.owner.map { "from \($0)" } ?? ""
        try EventLog.record(db, kind: .runClaimed, run: run, actor: owner, detail: former, now: now)
    }

    /// Nobody has the run any more; when its owner was last heard of stays.
    static func open(_ db: Database, _ run: Int64) throws {
        try db.execute(sql: "UPDATE run SET owner = NULL WHERE id = :run", arguments: ["run": run])
    }

    /// Somebody was heard of: an owner, or a person who let the run go on.
    static func heard(_ db: Database, _ run: Int64, at now: Timestamp) throws {
        try db.execute(
            sql: "UPDATE run SET heartbeat_at = :now WHERE id = :run",
            arguments: ["run": run, "now": now.milliseconds])
    }
}

/// The deliveries of a run in order of device, so many at a time.
enum DeliverySlice {
    /// Written in a fraction of a second.
    private static let countMax = 20_000

    /// The last device of the next slice; nil when there is none.
    static func end(_ db: Database, run: Int64, after device: Int64) throws -> Int64? {
        try Int64.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT max(device_id) FROM (
                        SELECT device_id FROM delivery WHERE run_id = :run AND device_id > :after
                        ORDER BY device_id LIMIT \(countMax)
                    )
                    """), arguments: ["run": run, "after": device])
    }
}

/// Puts a run into a state, with what that means for its deliveries.
struct RunStateChange {
    private let db: Database
    private let run: Int64
    private let now: Timestamp

    init(_ db: Database, _ run: Int64, now: Timestamp) {
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
        try db.execute(
            sql: "UPDATE run SET finished_at = coalesce(finished_at, :now) WHERE id = :run",
            arguments: ["run": run, "now": now.milliseconds])
    }

    /// The state alone.
    func note(
        _ state: RunState, reason: String?, actor: Actor, pausedBy: String? = nil, halt: RunHalt? = nil
    ) throws {
        let haltedBefore = try Int64.fetchOne(
            db, sql: "SELECT halted_at FROM run WHERE id = :run", arguments: ["run": run])
        let isAutomatic = HaltRetry.isAutomatic(state, halt, pausedBy: pausedBy)
        try db.execute(
            sql: """
                UPDATE run SET state = :state, state_reason = :reason, paused_by = :paused_by, halt = :halt,
                    halted_at = :halted_at
                WHERE id = :run
                """,
            arguments: [
                "run": run, "state": state.rawValue, "reason": reason, "paused_by": pausedBy, "halt": halt?.rawValue,
                "halted_at": isAutomatic ? haltedBefore ?? now.milliseconds : nil,
            ])
        try EventLog.record(
            db, kind: .entered(state, halt: halt), run: run, actor: actor, detail: reason ?? "", now: now)
        // The first pause of a series is news, the next failed attempt is not.
        if isAutomatic, haltedBefore != nil { return }
        try Outbox.add(
            state, halt: halt, of: run, reason: reason, pausedBy: pausedBy, event: db.lastInsertedRowID, now: now, db)
    }

    /// What is in flight becomes unknown, what waits suppressed(cancelled).
    private func cancelRest() throws {
        try LeaseRecovery(db, run, now: now).closeAll()
        _ = try suppress(upTo: .max, after: 0)
    }

    /// Suppresses what waits among the next deliveries of a run that is cancelled; returns the last device looked at,
    /// nil at the end. Millions of them in one transaction would keep everybody else from writing.
    func suppressSlice(after device: Int64) throws -> Int64? {
        guard try RunOwner(db, run).state == .cancelled,
            let last = try DeliverySlice.end(db, run: run, after: device)
        else { return nil }
        try suppress(upTo: last, after: device)
        return last
    }

    private func suppress(upTo last: Int64, after device: Int64) throws {
        try db.execute(
            sql: """
                UPDATE delivery SET
                    state = \(DeliveryState.suppressed.rawValue), status = 0, reason = :reason, not_before = NULL,
                    changed_at = :now
                WHERE run_id = :run AND device_id > :after AND device_id <= :last
                    AND state = \(DeliveryState.pending.rawValue)
                    AND device_id NOT IN (
                        SELECT json_each.value FROM json_each(:leased)
                    )
                """,
            arguments: [
                "run": run, "now": now.milliseconds, "reason": SuppressionReason.cancelled.rawValue, "after": device,
                "last": last, "leased": "[\(try leasedDevices().map(String.init).joined(separator: ","))]",
            ])
        var change = DeliveryCounts()
        change.pending = -db.changesCount
        change.suppressed = db.changesCount
        try RunRow.add(change, to: run, at: now, db)
    }

    /// Pending, and not waiting: their outcomes are still to come.
    private func leasedDevices() throws -> [Int64] {
        try LeaseRecovery(db, run, now: now).left().flatMap { $0.deliveries.map(\.device) }
    }

    private func requireDone() throws {
        let run = try RunProgress(SQLiteSession(db), run: self.run)
        guard run.isFrozen, run.counts.pending == 0, run.counts.leased == 0 else {
            throw StoreError.notFinished(run: self.run, pending: run.counts.pending, leased: run.counts.leased)
        }
    }
}
