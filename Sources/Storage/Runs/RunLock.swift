import GRDB
import Model

/// Who sends a run.
struct RunLock {
    let run: Int64
    let state: RunState
    let owner: String?
    let heartbeat: Timestamp?

    init(_ db: Database, _ run: Int64) throws {
        let row = try Row.fetchOne(
            db.cachedStatement(sql: "SELECT state, owner, heartbeat_at FROM run WHERE id = :run"),
            arguments: ["run": run])
        guard let row, let state = RunState(rawValue: row[0]) else { throw StoreError.noSuchRun(run) }
        self.run = run
        self.state = state
        owner = row[1]
        heartbeat = Timestamp(stored: row[2])
    }

    /// A heartbeat exactly `staleAfter` old is stale.
    func isHeld(apartFrom other: String?, at now: Timestamp, staleAfter: Duration) -> Bool {
        guard let owner, owner != other, let heartbeat else { return false }
        return now < heartbeat + staleAfter
    }

    func require(_ expected: String) throws {
        guard owner == expected else { throw StoreError.lostClaim(run: run, holder: owner) }
    }

    func take(_ db: Database, by owner: String, now: Timestamp) throws {
        try db.execute(
            sql: """
                UPDATE run SET
                    owner = :owner, heartbeat_at = :now, state = 'running', state_reason = NULL,
                    started_at = coalesce(started_at, :now)
                WHERE id = :run
                """, arguments: ["run": run, "owner": owner, "now": now.milliseconds])
        let former = self.owner.map { "from \($0)" } ?? ""
        try EventLog.record(db, kind: "run_claimed", run: run, actor: owner, detail: former, now: now)
    }
}
