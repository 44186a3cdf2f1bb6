import Model
import Store
import RelationalStore

extension LeaseCheck {
    init(_ db: PostgresSession) throws {
        self.init()
        let claims = "FROM event WHERE event.run_id = run.id AND kind = '\(EventKind.runClaimed.rawValue)'"
        // Claims carry the times of the senders' clocks, which cannot be compared with the server's. So only the
        // order of the claims counts.
        let mayBeOlder =
            switch db.time {
            case .caller: "coalesce(lease.leased_at < (SELECT max(at) \(claims)), false)"
            case .database:
                """
                EXISTS (SELECT 1 \(claims) AND actor = lease.owner AND id < (SELECT max(id) \(claims)))
                    OR EXISTS (SELECT 1 FROM sender WHERE sender.name = lease.owner AND lost_at IS NOT NULL)
                """
            }
        let leases = try db.all(
            """
            -- A sender that takes part in a run holds it as its owner does.
            SELECT lease.id, lease.run_id, lease.owner, lease.open, lease.entries,
                coalesce(run_sender.owner, run.owner), run.finished_at, \(mayBeOlder)
            FROM lease JOIN run ON run.id = lease.run_id
            LEFT JOIN run_sender ON run_sender.run_id = run.id AND run_sender.owner = lease.owner
            ORDER BY lease.id
            """
        ) { row in
            Lease(
                id: try row.int64(0), run: try row.int64(1), owner: try row.text(2), open: try row.int(3),
                entries: try row.bytes(4), runOwner: try row.textOrNil(5), runFinishedAt: try row.timestampOrNil(6),
                mayBeOlder: try row.bool(7))
        }
        for lease in leases {
            let standings = try Self.standings(lease, db)
            check(lease) { standings[$0] }
        }
    }

    private static func standings(_ lease: Lease, _ db: PostgresSession) throws -> [Int64: Standing] {
        let rows = try db.rows(
            "SELECT device_id, state, leases FROM \(DeliveryTable(run: lease.run).name) WHERE device_id = ANY ($1)",
            LeaseEntry.unpack(lease.entries).map(\.device))
        var standings: [Int64: Standing] = [:]
        for row in rows {
            standings[try row.int64(0)] = Standing(
                state: DeliveryState(code: try row.int64(1)), leases: try row.int(2))
        }
        return standings
    }
}
