package import Model
package import Store

/// The owner and the state of a run, from its row. <doc:LockOrder> has the order of locks.
package struct RunOwner {
    package let run: Int64
    package let state: RunState
    package let owner: String?
    package let heartbeat: Timestamp?
    /// The person who paused the run and must resume it; `nil` if the run paused itself.
    package let pausedBy: String?
    /// The halt that paused the run.
    package let halt: RunHalt?
    package let reason: String?

    /// Locks the run, its senders, its leases and its stages until the end of the transaction, to change the owner.
    package static func alone(_ db: some SQLSession, _ run: Int64) throws -> RunOwner {
        try db.lockWork(of: run)
        return try locked(db, run)
    }

    /// Locks the run until the end of the transaction.
    package static func locked<Session: SQLSession>(_ db: Session, _ run: Int64) throws -> RunOwner {
        let found = try db.first(
            """
            SELECT state, owner, heartbeat_at, paused_by, halt, state_reason FROM run WHERE id = $1\(Session.dialect.lock)
            """, run
        ) { row in
            try RunState(rawValue: try row.text(0)).map { state in
                RunOwner(
                    run: run, state: state, owner: try row.textOrNil(1), heartbeat: try row.timestampOrNil(2),
                    pausedBy: try row.textOrNil(3), halt: try row.textOrNil(4).flatMap(RunHalt.init),
                    reason: try row.textOrNil(5))
            }
        }
        guard let owner = found ?? nil else { throw StoreError.noSuchRun(run) }
        return owner
    }

    /// Returns a copy in which the sender `name` no longer owns the run.
    func left(by name: String) -> RunOwner {
        RunOwner(
            run: run, state: state, owner: owner == name ? nil : owner, heartbeat: heartbeat, pausedBy: pausedBy,
            halt: halt, reason: reason)
    }

    /// Returns the owner, unless it is `other` or dead.
    func holder(apartFrom other: String, isAlive: OwnerLiveness.IsAlive) -> String? {
        guard let owner, owner != other, isAlive(owner) else { return nil }
        return owner
    }

    /// Returns whether any living sender owns the run or participates in it.
    package func isHeld(_ db: some SQLSession, _ isAlive: OwnerLiveness.IsAlive) throws -> Bool {
        if let owner, isAlive(owner) { return true }
        return try db.senders(of: run).contains(where: isAlive)
    }

    package func require(_ expected: String) throws {
        guard owner == expected else { throw StoreError.lostClaim(run: run, holder: owner) }
    }

    /// Requires that `owner` is a sender of the run until the end of the transaction.
    package static func require(_ owner: String, of run: Int64, _ db: some SQLSession) throws {
        guard try !db.isSender(owner, of: run) else { return }
        throw StoreError.lostClaim(run: run, holder: try RunRow.require(db, run).owner)
    }

    /// Requires that `owner`, alive or dead, is recorded for the run until the end of the transaction.
    package static func requireRecord(_ owner: String, of run: Int64, _ db: some SQLSession) throws {
        let current = try alone(db, run)
        if try !db.senders(of: run).contains(owner) { try current.require(owner) }
    }

    /// Makes `owner` the owner of the run.
    ///
    /// - Parameter isAlive: whether a sender is alive. Living senders continue to send.
    package func claim(
        _ db: some SQLSession, by owner: Actor, _ isAlive: OwnerLiveness.IsAlive, now: Timestamp
    ) throws {
        try db.join(owner.name, to: run, isAlive)
        try db.execute(
            """
            UPDATE run SET
                owner = $2, heartbeat_at = $3, state = '\(RunState.running.rawValue)', state_reason = NULL,
                paused_by = NULL, halt = NULL, started_at = coalesce(started_at, $3),
                halted_at = CASE WHEN state = '\(RunState.paused.rawValue)' THEN halted_at END
            WHERE id = $1
            """, run, owner.name, now)
        try db.record(.runClaimed, run: run, by: owner, self.owner.map { "from \($0)" } ?? "", now: now)
    }

    /// Leaves the run without an owner; the time of the last heartbeat stays.
    ///
    /// - Parameter owner: the sender that leaves; `nil` if all participants leave.
    package static func open(_ db: some SQLSession, _ run: Int64, of owner: String? = nil) throws {
        try db.leave(run, owner)
        try db.execute("UPDATE run SET owner = NULL WHERE id = $1", run)
    }

    /// Records a heartbeat of the owner, or the time when a person resumed the run.
    package static func heard(_ db: some SQLSession, _ run: Int64, at now: Timestamp) throws {
        try db.execute("UPDATE run SET heartbeat_at = $2 WHERE id = $1", run, now)
    }
}
