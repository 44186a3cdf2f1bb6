import APNs
import Foundation
import GRDB

/// What the store says, read with SQL of its own from a copy of its files, as a kill left them.
struct StoreRecord {
    struct Delivery {
        var run: Int64
        var device: Int64
        var token: String
        /// As stored: 0 pending, 1 accepted, 2 rejected, 3 unknown, 4 suppressed.
        var state: Int
        var reason: String?
        var attempts: Int
        var doubts: Int
        /// The one it is sent under.
        var id: String
    }

    var deliveries: [Delivery] = []
    /// Sentences about accounts that do not close.
    var problems: [String] = []
    var leased = 0
    var hasOpenLeases: Bool { leased > 0 }
    /// The leases are those of a process before the one that has the run: it was killed before it could recover them.
    var isBeforeRecovery = false

    init(_ deliveries: [Delivery]) {
        self.deliveries = deliveries
    }

    /// - Parameter isWhole: with the deliveries one by one.
    init(folder: String, isWhole: Bool = false) throws {
        let files = FileManager.default
        let path = "\(folder)/fanfare.sqlite"
        let copy = "\(folder)/copy.sqlite"
        guard files.fileExists(atPath: path) else { return }
        for suffix in ["", "-wal", "-shm"] {
            try? files.removeItem(atPath: copy + suffix)
            // The log is read afresh: what a process kept in shared memory died with it.
            if suffix != "-shm", files.fileExists(atPath: path + suffix) {
                try files.copyItem(atPath: path + suffix, toPath: copy + suffix)
            }
        }
        let queue = try DatabaseQueue(path: copy)
        try queue.read { db in
            guard try db.tableExists("run") else { return }
            try readAccounts(db)
            if isWhole { try readDeliveries(db) }
        }
        try queue.close()
    }

    private mutating func readAccounts(_ db: Database) throws {
        for run in try Row.fetchAll(db, sql: "SELECT * FROM run") {
            let id: Int64 = run["id"]
            let rows = try Dictionary(
                uniqueKeysWithValues: Row.fetchAll(
                    db, sql: "SELECT state, count(*) FROM delivery WHERE run_id = ? GROUP BY state", arguments: [id]
                ).map { ($0[0] as Int, $0[1] as Int) })
            let lease = try Row.fetchOne(
                db, sql: "SELECT coalesce(sum(open), 0), max(owner) FROM lease WHERE run_id = ?", arguments: [id])
            let open: Int = lease?[0] ?? 0
            let stored = ["accepted", "rejected", "unknown", "suppressed"].map { run[$0] as Int }
            let pending: Int = run["pending"]
            let leased: Int = run["leased"]
            let audience: Int = run["audience"]
            if audience != pending + leased + stored.reduce(0, +) { problems.append("run \(id): the account is open") }
            if stored != (1...4).map({ rows[$0, default: 0] }) || pending + leased != rows[0, default: 0] {
                problems.append("run \(id): the account says \(stored), \(pending) and \(leased), the rows \(rows)")
            }
            if open != leased { problems.append("run \(id): \(leased) leased, \(open) in leases") }
            self.leased += leased
            if open > 0, lease?[1] as String? != run["owner"] as String? { isBeforeRecovery = true }
        }
    }

    private mutating func readDeliveries(_ db: Database) throws {
        let name = try Data.fetchOne(db, sql: "SELECT value FROM meta WHERE key = 'namespace'") ?? Data()
        let halves = [name.prefix(8), name.suffix(8)].map { $0.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
        let space = PushIDSpace(namespace: PushID(high: halves[0], low: halves[1]))
        deliveries = try Row.fetchAll(
            db,
            sql: """
                SELECT delivery.*, lower(hex(device.token)) AS token
                FROM delivery JOIN device ON device.id = delivery.device_id
                """
        ).map { row in
            Delivery(
                run: row["run_id"], device: row["device_id"], token: row["token"], state: row["state"],
                reason: row["reason"],
                attempts: row["attempt"], doubts: row["doubts"],
                id: space.id(run: row["run_id"], device: row["device_id"], generation: row["generation"]).description)
        }
    }
}
