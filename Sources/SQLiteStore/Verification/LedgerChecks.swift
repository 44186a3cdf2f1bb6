import GRDB
import Model
import RelationalStore
import Store

/// The silent ledger against deliveries and leases: a budget that is kept is worth nothing unless every background push
/// is in the ledger, and nothing stays in it that is over.
///
/// It reads out of each run's definition whether its pushes are background pushes. So that it cannot pass by finding no
/// such run, every run that the ledger or a silent lease names must be among them.
struct LedgerCoverCheck {
    static let name = "silent_ledger"
    static let promise = "every background push of late is in the silent ledger, and what is in flight there is leased"

    private(set) var faults: [StoreFault] = []
    /// The same of runs whose budget is on no record: the ledger may have forgotten their pushes by a shorter window.
    private(set) var doubts: [StoreFault] = []
    /// Background pushes that were looked for in the ledger.
    private(set) var compared = 0
    private var backgroundRuns: Set<Int64> = []

    init(_ db: Database, budgets: SilentBudgets) throws {
        try findUncovered(db, budgets)
        try findUnread(db)
        try findStranded(db)
    }

    /// Older ones may be pruned: when the device got its next, or on the day its outcomes were.
    private mutating func findUncovered(_ db: Database, _ budgets: SilentBudgets) throws {
        let latest = try Int64.fetchOne(db, sql: "SELECT max(reserved_at) FROM silent_ledger") ?? 0
        let recorded = try SilentLedger(db).recordedBudgets()
        let runs = try Row.fetchAll(
            db,
            sql: """
                SELECT id, json_extract(definition, '$.campaign.topic'),
                    json_extract(definition, '$.correction.kind') IS 'recall'
                FROM run
                WHERE json_extract(definition, '$.campaign.pushType') = :background ORDER BY id
                """, arguments: ["background": PushType.background.rawValue])
        for run in runs {
            backgroundRuns.insert(run[0])
            // A recall takes no slot; one that an older version sent has some.
            if run[2] { continue }
            // What a shorter window has forgotten is not missing.
            let window = [recorded.shortestWindow, budgets[run[1]].window].compactMap(\.self).min() ?? .zero
            let since = Timestamp(milliseconds: latest) - window
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT delivery.device_id, delivery.leases, silent_ledger.device_id IS NULL FROM delivery
                    JOIN device ON device.id = delivery.device_id
                    LEFT JOIN silent_ledger ON silent_ledger.device_id = delivery.device_id
                        AND silent_ledger.run_id = delivery.run_id AND silent_ledger.lease_number = delivery.leases
                    WHERE delivery.run_id = :run AND delivery.changed_at > :since
                        AND delivery.state IN (\(SQLConstants.list([.accepted, .unknown])))
                    """, arguments: ["run": run[0] as Int64, "since": since.milliseconds])
            while let row = try rows.next() {
                compared += 1
                guard row[2] else { continue }
                let what = "lease \(row[1] as Int) of it was sent and is not in the silent ledger"
                if recorded[run[0]] != nil {
                    faults.append(StoreFault(run: run[0], device: row[0], what))
                } else {
                    doubts.append(
                        StoreFault(
                            run: run[0], device: row[0],
                            "\(what); the budget of then is on no record, and a shorter window may have forgotten it"))
                }
            }
        }
    }

    /// Runs with background pushes whose definition does not say so. Run ids of a device that was merged stay what they were.
    private mutating func findUnread(_ db: Database) throws {
        let named = try Int64.fetchAll(
            db,
            sql: """
                SELECT run_id FROM silent_ledger WHERE run_id IN (SELECT id FROM run)
                UNION
                SELECT run_id FROM lease WHERE is_silent = 1 AND run_id IN (SELECT id FROM run)
                ORDER BY run_id
                """)
        for run in named where !backgroundRuns.contains(run) {
            faults.append(
                StoreFault(
                    run: run, "it has background pushes, but its definition is not read as a background campaign's"))
        }
    }

    private mutating func findStranded(_ db: Database) throws {
        let leased = try Self.leased(db)
        let rows = try RowStatement(
            db,
            """
            SELECT device_id, run_id, lease_number FROM silent_ledger WHERE settled_at IS NULL
            """)
        defer { rows.reset() }
        while try rows.step() {
            let slot = Slot(device: rows.int64(0), run: rows.int64(1), number: rows.int(2))
            guard !leased.contains(slot) else { continue }
            faults.append(
                StoreFault(
                    run: slot.run, device: slot.device,
                    "lease \(slot.number) of it holds a slot of the silent budget, but it is in no lease"))
        }
    }

    private struct Slot: Hashable {
        var device: Int64
        var run: Int64
        var number: Int
    }

    private static func leased(_ db: Database) throws -> Set<Slot> {
        let rows = try RowStatement(db, "SELECT run_id, entries FROM lease WHERE is_silent = 1")
        defer { rows.reset() }
        var slots: Set<Slot> = []
        while try rows.step() {
            for entry in LeaseEntry.unpack(rows.bytes(1)) {
                slots.insert(Slot(device: entry.device, run: rows.int64(0), number: entry.number))
            }
        }
        return slots
    }
}

extension LedgerScan {
    init(
        _ db: Database, recorded: RecordedBudgets? = nil,
        _ budget: @escaping (_ topic: String?) -> Model.Configuration.SilentBudget
    ) throws {
        self.init(recorded: recorded, budget)
        let rows = try RowStatement(
            db,
            """
            SELECT silent_ledger.device_id, reserved_at, settled_at, lease_number, run_id, topic.name
            FROM silent_ledger
            LEFT JOIN device ON device.id = silent_ledger.device_id
            LEFT JOIN topic ON topic.id = device.topic_id
            ORDER BY silent_ledger.device_id, reserved_at, lease_number DESC
            """)
        defer { rows.reset() }
        while try rows.step() {
            add(
                Push(
                    device: rows.int64(0), run: rows.int64(4), number: rows.int64(3),
                    reservedAt: Timestamp(milliseconds: rows.int64(1)),
                    settledAt: Timestamp(stored: rows.int64OrNil(2))), topic: { rows.text(5) })
        }
    }
}

extension CapScan {
    init(_ db: Database) throws {
        let rules = try Row.fetchAll(db, sql: "SELECT topic, class, caps FROM cap_rule").map { row in
            try CapRule(topic: row[0], pushClass: row[1], capsJSON: row[2])
        }
        self.init(rules)
        let leases = try RowStatement(db, "SELECT run_id, entries FROM lease WHERE is_capped = 1")
        defer { leases.reset() }
        while try leases.step() { addLease(run: leases.int64(0), LeaseEntry.unpack(leases.bytes(1))) }
        let rows = try RowStatement(db, "SELECT kind, pushes FROM cap_ledger ORDER BY kind, id")
        defer { rows.reset() }
        while try rows.step() { add(rows.int64(0) == 0 ? .devices : .person, rows.bytes(1)) }
    }
}

extension CapCover {
    init(_ db: Database, _ scan: CapScan) throws {
        self.init(
            scan, heardAt: Timestamp(stored: try Int64.fetchOne(db, sql: "SELECT max(heartbeat_at) FROM run")))
        let runs = try Row.fetchAll(
            db,
            sql: """
                SELECT id, capped_since FROM run
                WHERE capped_since IS NOT NULL AND (finished_at IS NULL OR finished_at >= :oldest) ORDER BY id
                """, arguments: ["oldest": oldest.milliseconds])
        for row in runs {
            // One that cannot be read is a fault of its own.
            guard let run = try RunRow.list(db, "WHERE id = $1", row[0] as Int64).readable.first else {
                continue
            }
            guard let since = since(Timestamp(milliseconds: row[1]), run) else { continue }
            try look(db, run.id, since: since)
        }
    }

    private mutating func look(_ db: Database, _ run: Int64, since: Timestamp) throws {
        let rows = try RowStatement(
            db,
            """
            SELECT delivery.device_id, delivery.leases FROM delivery JOIN device ON device.id = delivery.device_id
            WHERE delivery.run_id = :run AND delivery.changed_at >= :since
                AND delivery.state IN (\(SQLConstants.list([.accepted, .unknown])))
            ORDER BY delivery.device_id
            """)
        defer { rows.reset() }
        try rows.bind(run, rows.parameter(":run"))
        try rows.bind(since.milliseconds, rows.parameter(":since"))
        var book = CapBook()
        while try rows.step() {
            let key = CapKey.device(rows.int64(0))
            if !book.has(key) { book = CapBook() }
            try CapLedger(db).read([key], into: &book)
            check(run: run, device: rows.int64(0), number: rows.int(1), page: book.pushes(key))
        }
    }
}
