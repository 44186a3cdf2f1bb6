import Model
import Store
import RelationalStore

/// Who sends a run, and in which state it is, as its row says.
///
/// Who may lease of it stands in `run_sender` as well, so that a lease holds its right to the run without keeping those
/// waiting who count its outcomes.
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

    /// As it is until the end of the transaction, with nobody leasing meanwhile: for whoever changes who has it.
    static func alone(_ db: PostgresSession, _ run: Int64) throws -> RunOwner {
        // In the order of those who lease and settle: the right to the run, its leases and stages, and the run last.
        try db.execute("SELECT 1 FROM run_sender WHERE run_id = $1 ORDER BY owner FOR UPDATE", run)
        try db.execute("SELECT 1 FROM lease WHERE run_id = $1 ORDER BY id FOR NO KEY UPDATE", run)
        try db.execute("SELECT 1 FROM run_stage WHERE run_id = $1 ORDER BY stage FOR NO KEY UPDATE", run)
        return try locked(db, run)
    }

    /// As it is until the end of the transaction.
    static func locked(_ db: PostgresSession, _ run: Int64) throws -> RunOwner {
        let row = try db.rows(
            "SELECT state, owner, heartbeat_at, paused_by, halt, state_reason FROM run WHERE id = $1 FOR NO KEY UPDATE",
            run
        ).first
        guard let row, let state = RunState(rawValue: try row.text(0)) else { throw StoreError.noSuchRun(run) }
        return RunOwner(
            run: run, state: state, owner: try row.textOrNil(1), heartbeat: try row.timestampOrNil(2),
            pausedBy: try row.textOrNil(3), halt: try row.textOrNil(4).flatMap(RunHalt.init),
            reason: try row.textOrNil(5))
    }

    /// As it is once that one has let go of it.
    func left(by name: String) -> RunOwner {
        RunOwner(
            run: run, state: state, owner: owner == name ? nil : owner, heartbeat: heartbeat, pausedBy: pausedBy,
            halt: halt, reason: reason)
    }

    /// The owner, unless it is `other` or gone.
    func holder(apartFrom other: String, isAlive: OwnerLiveness.IsAlive) -> String? {
        guard let owner, owner != other, isAlive(owner) else { return nil }
        return owner
    }

    /// Whether anybody who lives has the run or takes part in it.
    func isHeld(_ db: PostgresSession, _ isAlive: OwnerLiveness.IsAlive) throws -> Bool {
        if let owner, isAlive(owner) { return true }
        return try Self.senders(db, run).contains(where: isAlive)
    }

    /// Whoever may lease of it.
    private static func senders(_ db: PostgresSession, _ run: Int64) throws -> [String] {
        try db.all("SELECT owner FROM run_sender WHERE run_id = $1", run) { try $0.text(0) }
    }

    func require(_ expected: String) throws {
        guard owner == expected else { throw StoreError.lostClaim(run: run, holder: owner) }
    }

    /// That `owner` sends the run, until the end of the transaction.
    static func require(_ owner: String, of run: Int64, _ db: PostgresSession) throws {
        let isSender = try db.execute(
            "SELECT 1 FROM run_sender WHERE run_id = $1 AND owner = $2 FOR SHARE", run, owner)
        guard isSender == 0 else { return }
        throw StoreError.lostClaim(run: run, holder: try RunRow.require(db, run).owner)
    }

    /// That the run stands under this name, alive or gone, until the end of the transaction.
    static func requireRecord(_ owner: String, of run: Int64, _ db: PostgresSession) throws {
        let current = try alone(db, run)
        if try !senders(db, run).contains(owner) { try current.require(owner) }
    }

    /// - Parameter isAlive: whoever lives goes on sending of it.
    func take(_ db: PostgresSession, by owner: Actor, _ isAlive: OwnerLiveness.IsAlive, now: Timestamp) throws {
        // A row that stays is one that a lease in flight still finds.
        let gone = try Self.senders(db, run).filter { $0 != owner.name && !isAlive($0) }
        try db.execute("DELETE FROM run_sender WHERE run_id = $1 AND owner = ANY ($2)", run, gone)
        try db.execute(
            "INSERT INTO run_sender (run_id, owner) VALUES ($1, $2) ON CONFLICT DO NOTHING", run, owner.name)
        try db.execute(
            """
            UPDATE run SET
                owner = $2, heartbeat_at = $3, state = '\(RunState.running.rawValue)', state_reason = NULL,
                paused_by = NULL, halt = NULL, started_at = coalesce(started_at, $3),
                halted_at = CASE WHEN state = '\(RunState.paused.rawValue)' THEN halted_at END
            WHERE id = $1
            """, run, owner.name, now)
        let former = self.owner.map { "from \($0)" } ?? ""
        try EventLog.record(db, kind: .runClaimed, run: run, actor: owner, detail: former, now: now)
    }

    /// Nobody has the run any more; when its owner was last heard of stays.
    ///
    /// - Parameter owner: only that one leaves it; nil: all who take part in it.
    static func open(_ db: PostgresSession, _ run: Int64, of owner: String? = nil) throws {
        try db.execute("DELETE FROM run_sender WHERE run_id = $1 AND ($2::text IS NULL OR owner = $2)", run, owner)
        try db.execute("UPDATE run SET owner = NULL WHERE id = $1", run)
    }

    /// Somebody was heard of: an owner, or a person who let the run go on.
    static func heard(_ db: PostgresSession, _ run: Int64, at now: Timestamp) throws {
        try db.execute("UPDATE run SET heartbeat_at = $2 WHERE id = $1", run, now)
    }
}
