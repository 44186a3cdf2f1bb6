import Model
import Store

extension LedgerScan {
    init(
        _ db: some SQLSession, recorded: RecordedBudgets? = nil,
        _ budget: @escaping (_ topic: String?) -> Configuration.SilentBudget
    ) throws {
        self.init(recorded: recorded, budget)
        try db.each(
            """
            SELECT silent_ledger.device_id, run_id, lease_number, reserved_at, settled_at, topic.name
            FROM silent_ledger
            LEFT JOIN device ON device.id = silent_ledger.device_id
            LEFT JOIN topic ON topic.id = device.topic_id
            ORDER BY silent_ledger.device_id, reserved_at, lease_number DESC
            """, values: []
        ) { row in
            let topic = try row.textOrNil(5)
            add(
                Push(
                    device: try row.int64(0), run: try row.int64(1), number: try row.int64(2),
                    reservedAt: try row.timestamp(3), settledAt: try row.timestampOrNil(4)), topic: { topic })
        }
    }
}

extension CapScan {
    init<Session: SQLSession>(_ db: Session) throws {
        let rules = try db.all("SELECT topic, class, caps FROM cap_rule") { row in
            try CapRule(topic: try row.text(0), pushClass: try row.text(1), capsJSON: try row.text(2))
        }
        self.init(rules)
        try db.each("SELECT run_id, entries FROM lease WHERE is_capped", values: []) { row in
            addLease(run: try row.int64(0), LeaseEntry.unpack(try row.bytes(1)))
        }
        try db.each("SELECT kind, pushes FROM cap_ledger ORDER BY kind, id", values: []) { row in
            add(try row.int64(0) == 0 ? .devices : .person, try row.bytes(1))
        }
    }
}

extension CapLedgerCheck {
    /// The number of devices whose rows are read together.
    private static let batchRows = 10_000

    init<Session: SQLSession>(_ db: Session, _ scan: CapScan) throws {
        self.init(scan, heardAt: try db.first("SELECT max(heartbeat_at) FROM run") { try $0.timestampOrNil(0) } ?? nil)
        let runs = try db.all(
            """
            SELECT id, capped_since FROM run
            WHERE capped_since IS NOT NULL AND (finished_at IS NULL OR finished_at >= $1) AND outcomes_pruned_at IS NULL
            ORDER BY id
            """, oldest
        ) { (id: try $0.int64(0), cappedSince: try $0.timestamp(1)) }
        for found in runs {
            // Another check reports a run that cannot be read.
            guard let run = try RunRow.list(db, "WHERE id = $1", found.id).readable.first,
                let since = since(found.cappedSince, run)
            else { continue }
            // Skip a run whose outcomes are being pruned now.
            guard try db.hasDeliveries(of: run.id) else { continue }
            var last: Int64? = 0
            while let after = last {
                last = try db.keepingNoLocks { try look(db, run.id, since: since, after: after) }
            }
        }
    }

    /// Returns the last device read; `nil` if there are no more.
    private mutating func look<Session: SQLSession>(
        _ db: Session, _ run: Int64, since: Timestamp, after: Int64
    ) throws -> Int64? {
        let sent = try db.all(
            """
            SELECT delivery.device_id, delivery.leases
            FROM \(Session.dialect.deliveries(of: run, as: "delivery")) JOIN device ON device.id = delivery.device_id
            WHERE \(Session.dialect.isOf(parameter: 1)) AND delivery.device_id > $2 AND delivery.changed_at >= $3
                AND delivery.state IN (\(SQLConstants.list([.accepted, .unknown] as [DeliveryState])))
            ORDER BY delivery.device_id LIMIT \(Self.batchRows)
            """, run, after, since
        ) { (device: try $0.int64(0), number: try $0.int(1)) }
        let usage = try db.caps(of: Set(sent.map { .device($0.device) }))
        for push in sent {
            check(run: run, device: push.device, number: push.number, row: usage.pushes(.device(push.device)))
        }
        return sent.last?.device
    }
}

/// Compares the silent ledger with deliveries and leases. Every background push must be in the ledger, because
/// otherwise a device could exceed its budget. No slot may stay open after its push has ended.
///
/// The definition of a run says whether its pushes are background pushes. Every run in the ledger or in a silent
/// lease must have such a definition. So the check also fails if it misreads the definitions and finds no such run.
struct LedgerCover<Session: SQLSession> {
    static var name: String { "silent_ledger" }
    static var promise: String {
        "every recent background push is in the silent ledger, and every entry in flight there is leased"
    }

    private(set) var faults: [StoreFault] = []
    /// The faults of runs whose budget is not recorded. The ledger may have deleted their pushes because of a
    /// shorter window.
    private(set) var doubts: [StoreFault] = []
    /// The number of background pushes compared with the ledger.
    private(set) var compared = 0
    private var backgroundRuns: Set<Int64> = []

    init(_ db: Session, budgets: SilentBudgets) throws {
        try findUncovered(db, budgets)
        try findUnread(db)
        try findStranded(db)
    }

    /// Finds recent background pushes that are not in the ledger. Older entries may be missing, because the next
    /// push to a device deletes them.
    private mutating func findUncovered(_ db: Session, _ budgets: SilentBudgets) throws {
        let latest =
            try db.first("SELECT coalesce(max(reserved_at), 0) FROM silent_ledger") { try $0.timestamp(0) }
            ?? Timestamp(milliseconds: 0)
        let recorded = try db.recordedBudgets()
        let json = { (path: [String]) in Session.dialect.json("definition", path: path) }
        let runs = try db.all(
            """
            -- A recall takes no slot; one that an older version sent has some.
            SELECT id, \(json(["campaign", "topic"])),
                outcomes_pruned_at IS NULL AND \(json(["correction", "kind"])) IS DISTINCT FROM 'recall'
            FROM run WHERE \(json(["campaign", "pushType"])) = '\(PushType.background.rawValue)' ORDER BY id
            """
        ) { (run: try $0.int64(0), topic: try $0.textOrNil(1), isCovered: try $0.bool(2)) }
        for run in runs {
            backgroundRuns.insert(run.run)
            // Skip a run whose outcomes were pruned, or are being pruned now.
            guard run.isCovered, try db.hasDeliveries(of: run.run) else { continue }
            // An entry that was deleted because of a shorter window is not missing.
            let window = [recorded?.shortestWindow, budgets[run.topic].window].compactMap(\.self).min() ?? .zero
            let isSure = recorded.map { $0[run.run] != nil } ?? true
            try db.keepingNoLocks { try compare(db, run.run, since: latest - window, isSure: isSure) }
        }
    }

    private mutating func compare(_ db: Session, _ run: Int64, since: Timestamp, isSure: Bool) throws {
        try db.each(
            """
            SELECT delivery.device_id, delivery.leases, silent_ledger.device_id IS NULL
            FROM \(Session.dialect.deliveries(of: run, as: "delivery")) JOIN device ON device.id = delivery.device_id
            LEFT JOIN silent_ledger ON silent_ledger.device_id = delivery.device_id
                AND silent_ledger.run_id = delivery.run_id AND silent_ledger.lease_number = delivery.leases
            WHERE delivery.run_id = $1 AND delivery.changed_at > $2
                AND delivery.state IN (\(SQLConstants.list([.accepted, .unknown] as [DeliveryState])))
            """, values: [run, since]
        ) { row in
            compared += 1
            guard try row.bool(2) else { return }
            let what = "lease \(try row.int(1)) of the run was sent, but is not in the silent ledger"
            if isSure {
                faults.append(StoreFault(run: run, device: try row.int64(0), what))
            } else {
                doubts.append(
                    StoreFault(
                        run: run, device: try row.int64(0),
                        "\(what); the budget at that time is not recorded, and a shorter window may have dropped it"))
            }
        }
    }

    /// Finds runs with entries of background pushes whose definition is not for background pushes. It compares run
    /// ids, because a merge of devices does not change them.
    private mutating func findUnread(_ db: Session) throws {
        let named = try db.all(
            """
            SELECT run_id FROM silent_ledger WHERE run_id IN (SELECT id FROM run)
            UNION
            SELECT run_id FROM lease WHERE is_silent AND run_id IN (SELECT id FROM run)
            ORDER BY run_id
            """
        ) { try $0.int64(0) }
        for run in named where !backgroundRuns.contains(run) {
            faults.append(
                StoreFault(
                    run: run, "the run has background pushes, but its definition is not a background campaign"))
        }
    }

    private mutating func findStranded(_ db: Session) throws {
        var leased: Set<Slot> = []
        try db.each("SELECT run_id, entries FROM lease WHERE is_silent", values: []) { row in
            let run = try row.int64(0)
            for entry in LeaseEntry.unpack(try row.bytes(1)) {
                leased.insert(Slot(device: entry.device, run: run, number: entry.number))
            }
        }
        try db.each("SELECT device_id, run_id, lease_number FROM silent_ledger WHERE settled_at IS NULL", values: []) {
            let slot = Slot(device: try $0.int64(0), run: try $0.int64(1), number: try $0.int(2))
            guard !leased.contains(slot) else { return }
            faults.append(
                StoreFault(
                    run: slot.run, device: slot.device,
                    "lease \(slot.number) of the run holds a slot of the silent budget, but the delivery is not leased")
            )
        }
    }

    private struct Slot: Hashable {
        var device: Int64
        var run: Int64
        var number: Int
    }
}
