import GRDB
import Store
import Model

/// Two stored devices turn out to be one installation: the one that goes leaves its tags, segments and silent budget
/// to the one that stays.
struct DeviceMerge {
    /// A background push still in flight for the device that goes counts for the one that stays as if it ended this
    /// much later, since its outcome will be recorded under the old id.
    static let flightMaxMs: Int64 = 3_600_000

    private let db: Database
    private let now: Timestamp

    init(_ db: Database, now: Timestamp) {
        self.db = db
        self.now = now
    }

    /// Deletes `gone`; deliveries naming it stay, and are suppressed when their turn comes.
    func absorb(_ gone: Int64, into kept: Int64) throws {
        let both: StatementArguments = ["gone": gone, "kept": kept]
        try db.execute(
            sql: "INSERT OR IGNORE INTO tag (device_id, name) SELECT :kept, name FROM tag WHERE device_id = :gone",
            arguments: both)
        try db.execute(
            sql: """
                UPDATE segment SET members = members - 1 WHERE
                    EXISTS (SELECT 1 FROM segment_member WHERE segment_id = segment.id AND device_id = :gone)
                    AND EXISTS (SELECT 1 FROM segment_member WHERE segment_id = segment.id AND device_id = :kept)
                """, arguments: both)
        try db.execute(
            sql: """
                INSERT OR IGNORE INTO segment_member (segment_id, device_id)
                SELECT segment_id, :kept FROM segment_member WHERE device_id = :gone
                """, arguments: both)
        try inheritLedger(of: gone, by: kept)
        try db.execute(sql: "DELETE FROM proven_token WHERE device_id = :gone", arguments: ["gone": gone])
        try db.execute(sql: "DELETE FROM device WHERE id = :gone", arguments: ["gone": gone])
    }

    /// Inherited entries count from now on, and have negative attempts, so that they never meet the device's own for
    /// the same run.
    private func inheritLedger(of gone: Int64, by kept: Int64) throws {
        let entries = try Row.fetchAll(
            db,
            sql: "SELECT run_id, settled_at FROM silent_ledger WHERE device_id = :gone",
            arguments: ["gone": gone])
        for entry in entries {
            try db.execute(
                sql: """
                    INSERT INTO silent_ledger (device_id, run_id, attempt, reserved_at, settled_at)
                    SELECT :kept, :run, coalesce(min(min(attempt), 0), 0) - 1, :now, coalesce(:settled, :latest)
                    FROM silent_ledger WHERE device_id = :kept AND run_id = :run
                    """,
                arguments: [
                    "kept": kept, "run": entry["run_id"] as Int64, "now": now.milliseconds,
                    "settled": entry["settled_at"] as Int64?, "latest": now.milliseconds + Self.flightMaxMs,
                ])
        }
    }
}
