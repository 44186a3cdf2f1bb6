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
                SELECT lease.id, lease.run_id, lease.owner, lease.leased_at, lease.open, lease.entries, run.owner,
                    run.finished_at,
                    (SELECT max(at) FROM event WHERE event.run_id = run.id AND kind = :claimed)
                FROM lease JOIN run ON run.id = lease.run_id ORDER BY lease.id
                """, arguments: ["claimed": EventKind.runClaimed.rawValue])
        let delivery = try db.cachedStatement(
            sql: "SELECT state, leases FROM delivery WHERE run_id = :run AND device_id = :device")
        while let row = try leases.next() {
            let lease = Lease(
                id: row[0], run: row[1], owner: row[2], leasedAt: Timestamp(milliseconds: row[3]), open: row[4],
                entries: Array(row[5] as Data), runOwner: row[6], runFinishedAt: Timestamp(stored: row[7]),
                runClaimedAt: Timestamp(stored: row[8]))
            try check(lease) { device in
                try Row.fetchOne(delivery, arguments: ["run": lease.run, "device": device]).map {
                    Standing(state: DeliveryState(code: $0[0]), leases: $0[1])
                }
            }
        }
    }
}
