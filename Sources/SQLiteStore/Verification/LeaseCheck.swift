import Foundation
import GRDB
import Model
import Store

extension LeaseCheck {
    init(_ db: Database) throws {
        self.init()
        let leases = try Row.fetchCursor(
            db,
            sql: """
                SELECT lease.id, lease.run_id, lease.owner, lease.open, lease.entries, run.owner, run.finished_at,
                    coalesce(lease.leased_at < (
                        SELECT max(at) FROM event WHERE event.run_id = run.id AND kind = :claimed
                    ), false)
                FROM lease JOIN run ON run.id = lease.run_id ORDER BY lease.id
                """, arguments: ["claimed": EventKind.runClaimed.rawValue])
        let delivery = try db.cachedStatement(
            sql: "SELECT state, leases FROM delivery WHERE run_id = :run AND device_id = :device")
        while let row = try leases.next() {
            let lease = Lease(
                id: row[0], run: row[1], owner: row[2], open: row[3], entries: Array(row[4] as Data), runOwner: row[5],
                runFinishedAt: Timestamp(stored: row[6]), mayBeOlder: row[7])
            try check(lease) { device in
                try Row.fetchOne(delivery, arguments: ["run": lease.run, "device": device]).map {
                    Standing(state: DeliveryState(code: $0[0]), leases: $0[1])
                }
            }
        }
    }
}
