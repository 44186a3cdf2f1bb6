import GRDB
import Store
import Model

/// Who sends a run.
struct RunLock {
    let run: Int64
    let state: RunState
    let owner: String?
    let heartbeat: Timestamp?
    /// The person a paused run waits for; nil where it paused itself.
    let pausedBy: String?

    init(_ db: Database, _ run: Int64) throws {
        let row = try Row.fetchOne(
            db.cachedStatement(sql: "SELECT state, owner, heartbeat_at, paused_by FROM run WHERE id = :run"),
            arguments: ["run": run])
        guard let row, let state = RunState(rawValue: row[0]) else { throw StoreError.noSuchRun(run) }
        self.run = run
        self.state = state
        owner = row[1]
        heartbeat = Timestamp(stored: row[2])
        pausedBy = row[3]
    }

    /// The owner, unless it is `other`, has ended, or was not heard of for `staleAfter`: a heartbeat just that old is
    /// stale.
    func holder(
        apartFrom other: String?, at now: Timestamp, staleAfter: Duration, hasEnded: SQLiteFileStore.HasEnded
    ) -> String? {
        guard let owner, owner != other, let heartbeat, now < heartbeat + staleAfter, !hasEnded(owner) else {
            return nil
        }
        return owner
    }

    func require(_ expected: String) throws {
        guard owner == expected else { throw StoreError.lostClaim(run: run, holder: owner) }
    }

    func take(_ db: Database, by sender: Actor, now: Timestamp) throws {
        try db.execute(
            sql: """
                UPDATE run SET
                    owner = :owner, heartbeat_at = :now, state = 'running', state_reason = NULL, paused_by = NULL, halt = NULL,
                    started_at = coalesce(started_at, :now)
                WHERE id = :run
                """, arguments: ["run": run, "owner": sender.name, "now": now.milliseconds])
        let former = self.owner.map { "from \($0)" } ?? ""
        try EventLog.record(db, kind: "run_claimed", run: run, actor: sender, detail: former, now: now)
    }

    static func open(_ db: Database, _ run: Int64) throws {
        try db.execute(sql: "UPDATE run SET owner = NULL, heartbeat_at = NULL WHERE id = :run", arguments: ["run": run])
    }
}
