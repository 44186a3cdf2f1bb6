import APNs
import Foundation
import GRDB
import Platform
import TestSupport

/// The contents of the store as a kill left them. They are read with the tests' own SQL, for SQLite from a copy of the
/// files.
struct StoreRecord {
    struct Delivery {
        var run: Int64
        var device: Int64
        var token: String
        /// The stored state: 0 pending, 1 accepted, 2 rejected, 3 unknown, 4 suppressed.
        var state: Int
        var reason: String?
        /// `nil` means the last stage, or a run without stages.
        var stage: Int?
        var attempts: Int
        var doubts: Int
        /// The `apns-id` of its requests.
        var id: String
    }

    /// A stage of a run.
    struct Stage: Decodable {
        var run: Int64
        var stage: Int
        /// The time at which the stage started, in milliseconds.
        var openedAt: Int?
    }

    /// A plan that waits for signatures, or waited for them.
    struct Approval: Decodable {
        struct Signature: Decodable {
            var identity: String
            /// The time of the signature, in milliseconds.
            var signedAt: Int
        }

        var state: String
        var run: Int64?
        var signatures: [Signature]
    }

    var deliveries: [Delivery] = []
    var stages: [Stage] = []
    var approvals: [Approval] = []
    /// The numbers of the runs, by occurrence.
    var runs: [String: Int64] = [:]
    /// Descriptions of counts that do not balance.
    var problems: [String] = []
    /// Whether the store records a stop of everything or of a campaign.
    var isStopped = false
    var leased = 0
    /// The largest number of deliveries that one process has leased of one run. On a server, the next process may join
    /// before the leases of the last one are recovered.
    var leasedByOne = 0
    var hasOpenLeases: Bool { leased > 0 }
    /// Whether the leases belong to an earlier process than the run's owner. The owner was killed before it recovered
    /// them.
    var isBeforeRecovery = false

    init(_ deliveries: [Delivery], stages: [Stage] = []) {
        self.deliveries = deliveries
        self.stages = stages
    }

    /// Reads a SQLite store.
    ///
    /// - Parameter isWhole: whether to read each delivery.
    init(folder: String, isWhole: Bool = false) throws {
        let files = FileManager.default
        let path = "\(folder)/fanfare.sqlite"
        let copy = "\(folder)/copy.sqlite"
        guard files.fileExists(atPath: path) else { return }
        for suffix in ["", "-wal", "-shm"] {
            try? files.removeItem(atPath: copy + suffix)
            // The log is read again, because the killed process's shared memory is lost.
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

    /// Reads a store on PostgreSQL with `psql`. The counts come from one statement, so they belong to the same moment.
    init(_ cluster: PostgresCluster, _ database: String, isWhole: Bool = false) throws {
        let accounts = try cluster.sql(Self.accountsSQL, database: database)
        try examine(JSONDecoder().decode(Accounts.self, from: Data(accounts.utf8)))
        guard isWhole else { return }
        let name = try cluster.sql("SELECT encode(value, 'hex') FROM meta WHERE key = 'namespace'", database: database)
        let halves = [name.prefix(16), name.suffix(16)].map { UInt64($0, radix: 16) ?? 0 }
        let space = PushIDSpace(namespace: PushID(high: halves[0], low: halves[1]))
        let rows = try cluster.sql(
            """
            SELECT coalesce(json_agg(json_build_object(
                'run', run_id, 'device', device_id, 'token', encode(device.token, 'hex'), 'state', delivery.state,
                'reason', delivery.reason, 'stage', delivery.stage, 'attempts', delivery.attempt, 'doubts', delivery.doubts,
                'generation', delivery.generation)), '[]')
            FROM delivery JOIN device ON device.id = delivery.device_id
            """, database: database)
        let stages = try cluster.sql(
            """
            SELECT coalesce(json_agg(json_build_object('run', run_id, 'stage', stage, 'openedAt', opened_at)), '[]')
            FROM run_stage
            """, database: database)
        self.stages = try JSONDecoder().decode([Stage].self, from: Data(stages.utf8))
        deliveries = try JSONDecoder().decode([ServerRow].self, from: Data(rows.utf8)).map { row in
            Delivery(
                run: row.run, device: row.device, token: row.token, state: row.state, reason: row.reason,
                stage: row.stage, attempts: row.attempts, doubts: row.doubts,
                id: space.id(run: row.run, device: row.device, generation: row.generation).description)
        }
    }

    private static let accountsSQL = """
        SELECT json_build_object(
            'approvals', coalesce((SELECT json_agg(json_build_object(
                'state', state, 'run', run_id, 'signatures', (
                    SELECT coalesce(json_agg(json_build_object('identity', identity, 'signedAt', signed_at)), '[]')
                    FROM approval_signature WHERE approval_id = approval.id))) FROM approval), '[]'),
            'isStopped', EXISTS (SELECT FROM meta WHERE key = 'stops'),
            'runs', coalesce((SELECT json_agg(json_build_object(
                'id', id, 'occurrence', occurrence, 'owner', owner, 'audience', audience, 'pending', pending, 'leased', leased,
                'ended', json_build_array(accepted, rejected, unknown, suppressed))) FROM run), '[]'),
            'rows', coalesce((SELECT json_agg(json_build_object('run', run_id, 'state', state, 'count', count)) FROM (
                SELECT run_id, state, count(*) FROM delivery GROUP BY run_id, state) AS counted), '[]'),
            'leases', coalesce((SELECT json_agg(json_build_object('run', run_id, 'open', open, 'owner', owner)) FROM (
                SELECT run_id, sum(open) AS open, owner FROM lease GROUP BY run_id, owner) AS summed), '[]'))
        """

    /// The counts that the runs store, and the counted rows.
    private struct Accounts: Decodable {
        struct Run: Decodable {
            var id: Int64
            var occurrence: String
            var owner: String?
            var audience: Int
            var pending: Int
            var leased: Int
            /// The accepted, rejected, unknown and suppressed deliveries.
            var ended: [Int]
        }
        struct Count: Decodable {
            var run: Int64
            var state: Int
            var count: Int
        }
        struct Open: Decodable {
            var run: Int64
            var open: Int
            var owner: String?
        }

        var isStopped = false
        var approvals: [Approval] = []
        var runs: [Run]
        var rows: [Count]
        var leases: [Open]
    }

    private struct ServerRow: Decodable {
        var run: Int64
        var device: Int64
        var token: String
        var state: Int
        var reason: String?
        var stage: Int?
        var attempts: Int
        var doubts: Int
        var generation: Int
    }

    private mutating func examine(_ accounts: Accounts) {
        isStopped = accounts.isStopped
        approvals = accounts.approvals
        runs = Dictionary(accounts.runs.map { ($0.occurrence, $0.id) }) { first, _ in first }
        for run in accounts.runs {
            let rows = Dictionary(
                accounts.rows.filter { $0.run == run.id }.map { ($0.state, $0.count) }, uniquingKeysWith: +)
            let leases = accounts.leases.filter { $0.run == run.id && $0.open > 0 }
            let open = leases.reduce(0) { $0 + $1.open }
            if run.audience != run.pending + run.leased + run.ended.reduce(0, +) {
                problems.append("run \(run.id): the account is open")
            }
            if run.ended != (1...4).map({ rows[$0, default: 0] }) || run.pending + run.leased != rows[0, default: 0] {
                problems.append(
                    "run \(run.id): the account says \(run.ended), \(run.pending) and \(run.leased), the rows \(rows)")
            }
            if open != run.leased { problems.append("run \(run.id): \(run.leased) leased, \(open) in leases") }
            leased += run.leased
            leasedByOne = max(leasedByOne, leases.map(\.open).max() ?? 0)
            if leases.contains(where: { $0.owner != run.owner }) { isBeforeRecovery = true }
        }
    }

    private mutating func readAccounts(_ db: Database) throws {
        var accounts = Accounts(runs: [], rows: [], leases: [])
        accounts.isStopped = try Row.fetchOne(db, sql: "SELECT 1 FROM meta WHERE key = 'stops'") != nil
        accounts.runs = try Row.fetchAll(db, sql: "SELECT * FROM run").map { run in
            Accounts.Run(
                id: run["id"], occurrence: run["occurrence"], owner: run["owner"], audience: run["audience"],
                pending: run["pending"],
                leased: run["leased"], ended: ["accepted", "rejected", "unknown", "suppressed"].map { run[$0] })
        }
        accounts.rows = try Row.fetchAll(db, sql: "SELECT run_id, state, count(*) FROM delivery GROUP BY 1, 2")
            .map { Accounts.Count(run: $0[0], state: $0[1], count: $0[2]) }
        accounts.leases = try Row.fetchAll(db, sql: "SELECT run_id, sum(open), owner FROM lease GROUP BY 1, 3")
            .map { Accounts.Open(run: $0[0], open: $0[1], owner: $0[2]) }
        accounts.approvals = try Row.fetchAll(db, sql: "SELECT id, state, run_id FROM approval").map { row in
            let signatures = try Row.fetchAll(
                db, sql: "SELECT identity, signed_at FROM approval_signature WHERE approval_id = ?",
                arguments: [row[0] as Int64])
            return Approval(
                state: row[1], run: row[2],
                signatures: signatures.map { Approval.Signature(identity: $0[0], signedAt: $0[1]) })
        }
        examine(accounts)
    }

    private mutating func readDeliveries(_ db: Database) throws {
        let name = try Data.fetchOne(db, sql: "SELECT value FROM meta WHERE key = 'namespace'") ?? Data()
        let halves = [name.prefix(8), name.suffix(8)].map { $0.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
        let space = PushIDSpace(namespace: PushID(high: halves[0], low: halves[1]))
        stages = try Row.fetchAll(db, sql: "SELECT run_id, stage, opened_at FROM run_stage").map {
            Stage(run: $0[0], stage: $0[1], openedAt: $0[2])
        }
        deliveries = try Row.fetchAll(
            db,
            sql: """
                SELECT delivery.*, lower(hex(device.token)) AS token
                FROM delivery JOIN device ON device.id = delivery.device_id
                """
        ).map { row in
            Delivery(
                run: row["run_id"], device: row["device_id"], token: row["token"], state: row["state"],
                reason: row["reason"], stage: row["stage"], attempts: row["attempt"], doubts: row["doubts"],
                id: space.id(run: row["run_id"], device: row["device_id"], generation: row["generation"]).description)
        }
    }
}
