import GRDB
import Model
import Store

/// The devices that APNs found gone in a run, until its end decides what becomes of them.
struct FoundGone {
    /// Written in a fraction of a second.
    private static let sliceCount = 10_000

    private let db: Database
    private let run: Int64

    init(_ db: Database, run: Int64) {
        self.db = db
        self.run = run
    }

    func note(_ settlement: Settlement, since: Timestamp) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO found_gone (run_id, device_id, generation, since, reason)
                VALUES (:run, :device, :generation, :since, :reason)
                ON CONFLICT (run_id, device_id) DO UPDATE SET
                    generation = excluded.generation, since = excluded.since, reason = excluded.reason
                """
        ).execute(arguments: [
            "run": run, "device": settlement.device, "generation": settlement.generation,
            "since": since.milliseconds, "reason": settlement.reason,
        ])
    }

    /// Marks those for which the verdict still holds, and forgets the slice. Returns how many, and the last device
    /// looked at; `nil` at the end.
    func markSlice(after device: Int64) throws -> (count: Int, last: Int64?) {
        let found = try Row.fetchAll(
            db,
            sql: """
                SELECT device_id, generation, since, reason FROM found_gone
                WHERE run_id = :run AND device_id > :after ORDER BY device_id LIMIT \(Self.sliceCount)
                """, arguments: ["run": run, "after": device])
        guard let last = found.last?[0] as Int64? else { return (0, nil) }
        let status = try DeviceStatusStatement(db)
        var count = 0
        for row in found {
            let since = Timestamp(milliseconds: row[2])
            guard let facts = try status.read(row[0]), facts.status != .gone,
                TokenVerdict.holds(generation: row[1], at: since, for: facts.registration)
            else { continue }
            try status.write(row[0], .gone, reason: row[3], at: since)
            count += 1
        }
        try db.execute(
            sql: "UPDATE run SET devices_gone = devices_gone + :count WHERE id = :run",
            arguments: ["run": run, "count": count])
        try db.execute(
            sql: "DELETE FROM found_gone WHERE run_id = :run AND device_id <= :last",
            arguments: ["run": run, "last": last])
        return (count, last)
    }

    func forget() throws {
        try db.execute(sql: "DELETE FROM found_gone WHERE run_id = :run", arguments: ["run": run])
    }
}
