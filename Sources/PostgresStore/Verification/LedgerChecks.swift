import Model
import Store
import RelationalStore

extension LeaseCheck {
    init(_ db: PostgresSession) throws {
        self.init()
        let claims = "FROM event WHERE event.run_id = run.id AND kind = '\(EventKind.runClaimed.rawValue)'"
        // Claims are by the clocks of senders, which say nothing beside the server's: only their order counts.
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
            -- Whoever takes part in a run holds it as its owner does.
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

extension LedgerScan {
    init(_ db: PostgresSession, _ budget: @escaping (_ topic: String?) -> Configuration.SilentBudget) throws {
        self.init(budget)
        try db.each(
            """
            SELECT silent_ledger.device_id, run_id, lease_number, reserved_at, settled_at, topic.name
            FROM silent_ledger
            LEFT JOIN device ON device.id = silent_ledger.device_id
            LEFT JOIN topic ON topic.id = device.topic_id
            ORDER BY silent_ledger.device_id, reserved_at, lease_number DESC
            """
        ) { row in
            let topic = try row.textOrNil(5)
            add(
                Push(
                    device: try row.int64(0), run: try row.int64(1), number: try row.int64(2),
                    reservedAt: try row.timestamp(3), settledAt: try row.timestampOrNil(4)), topic: { topic })
        }
    }
}

/// The silent ledger against deliveries and leases: a budget that is kept is worth nothing unless every background push
/// is in the ledger, and nothing stays in it that is over.
///
/// It reads out of each run's definition whether its pushes are background pushes. So that it cannot pass by finding no
/// such run, every run that the ledger or a silent lease names must be among them.
struct LedgerCoverCheck {
    static let name = "silent_ledger"
    static let promise = "every background push of late is in the silent ledger, and what is in flight there is leased"

    private(set) var faults: [StoreFault] = []
    /// Background pushes that were looked for in the ledger.
    private(set) var compared = 0
    private var backgroundRuns: Set<Int64> = []

    init(_ db: PostgresSession, budgets: SilentBudgets) throws {
        try findUncovered(db, budgets)
        try findUnread(db)
        try findStranded(db)
    }

    /// Older ones may be pruned: when the device got its next, or on the day its outcomes were.
    private mutating func findUncovered(_ db: PostgresSession, _ budgets: SilentBudgets) throws {
        let latest = try db.first("SELECT coalesce(max(reserved_at), 0) FROM silent_ledger") { try $0.timestamp(0) }
        let runs = try db.all(
            """
            -- A recall takes no slot; one that an older version sent has some.
            SELECT id, definition::json #>> '{campaign,topic}',
                outcomes_pruned_at IS NULL AND definition::json #>> '{correction,kind}' IS DISTINCT FROM 'recall'
            FROM run
            WHERE definition::json #>> '{campaign,pushType}' = '\(PushType.background.rawValue)' ORDER BY id
            """
        ) { (run: try $0.int64(0), topic: try $0.textOrNil(1), isCovered: try $0.bool(2)) }
        for run in runs {
            backgroundRuns.insert(run.run)
            // Pruned, or being so at this moment.
            guard run.isCovered, try DeliveryTable(run: run.run).isThere(db) else { continue }
            let since = RollingWindow(budgets[run.topic], at: latest ?? Timestamp(milliseconds: 0)).opensAt
            try db.each(
                """
                SELECT delivery.device_id, delivery.leases, silent_ledger.device_id IS NULL
                FROM \(DeliveryTable(run: run.run).name) AS delivery JOIN device ON device.id = delivery.device_id
                LEFT JOIN silent_ledger ON silent_ledger.device_id = delivery.device_id
                    AND silent_ledger.run_id = delivery.run_id AND silent_ledger.lease_number = delivery.leases
                WHERE delivery.changed_at > $1
                    AND delivery.state IN (\(SQLConstants.list([.accepted, .unknown] as [DeliveryState])))
                """, since
            ) { row in
                compared += 1
                guard try row.bool(2) else { return }
                faults.append(
                    StoreFault(
                        run: run.run, device: try row.int64(0),
                        "lease \(try row.int(1)) of it was sent and is not in the silent ledger"))
            }
        }
    }

    /// Runs with background pushes whose definition does not say so. Run ids of a device that was merged stay what they were.
    private mutating func findUnread(_ db: PostgresSession) throws {
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
                    run: run, "it has background pushes, but its definition is not read as a background campaign's"))
        }
    }

    private mutating func findStranded(_ db: PostgresSession) throws {
        let leased = try Self.leased(db)
        try db.each("SELECT device_id, run_id, lease_number FROM silent_ledger WHERE settled_at IS NULL") { row in
            let slot = Slot(device: try row.int64(0), run: try row.int64(1), number: try row.int(2))
            guard !leased.contains(slot) else { return }
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

    private static func leased(_ db: PostgresSession) throws -> Set<Slot> {
        var slots: Set<Slot> = []
        for row in try db.rows("SELECT run_id, entries FROM lease WHERE is_silent") {
            let run = try row.int64(0)
            for entry in LeaseEntry.unpack(try row.bytes(1)) {
                slots.insert(Slot(device: entry.device, run: run, number: entry.number))
            }
        }
        return slots
    }
}

extension CapScan {
    init(_ db: PostgresSession) throws {
        let rules = try db.all("SELECT topic, class, caps FROM cap_rule") { row in
            try CapRule(topic: try row.text(0), pushClass: try row.text(1), capsJSON: try row.text(2))
        }
        self.init(rules)
        for row in try db.rows("SELECT run_id, entries FROM lease WHERE is_capped") {
            addLease(run: try row.int64(0), LeaseEntry.unpack(try row.bytes(1)))
        }
        try db.each("SELECT kind, pushes FROM cap_ledger ORDER BY kind, id") { row in
            add(try row.int64(0) == 0 ? .devices : .person, try row.bytes(1))
        }
    }
}

extension CapCover {
    /// Devices whose rows are looked at together.
    private static let batchRows = 10_000

    init(_ db: PostgresSession, _ scan: CapScan) throws {
        self.init(scan, heardAt: try db.first("SELECT max(heartbeat_at) FROM run") { try $0.timestampOrNil(0) } ?? nil)
        let runs = try db.all(
            """
            SELECT id, capped_since FROM run
            WHERE capped_since IS NOT NULL AND (finished_at IS NULL OR finished_at >= $1) AND outcomes_pruned_at IS NULL
            ORDER BY id
            """, oldest
        ) { (id: try $0.int64(0), cappedSince: try $0.timestamp(1)) }
        for found in runs {
            // One that cannot be read is a fault of its own.
            guard let run = try RunRow.list(db, "WHERE id = $1", found.id).readable.first else { continue }
            guard let since = since(found.cappedSince, run) else { continue }
            // Its outcomes are being pruned at this moment.
            guard try DeliveryTable(run: run.id).isThere(db) else { continue }
            var last: Int64? = 0
            while let after = last { last = try look(db, run.id, since: since, after: after) }
        }
    }

    /// The last device looked at; nil: there are no more.
    private mutating func look(_ db: PostgresSession, _ run: Int64, since: Timestamp, after: Int64) throws -> Int64? {
        let sent = try db.all(
            """
            SELECT delivery.device_id, delivery.leases
            FROM \(DeliveryTable(run: run).name) AS delivery JOIN device ON device.id = delivery.device_id
            WHERE delivery.device_id > $1 AND delivery.changed_at >= $2
                AND delivery.state IN (\(SQLConstants.list([.accepted, .unknown] as [DeliveryState])))
            ORDER BY delivery.device_id LIMIT \(Self.batchRows)
            """, after, since
        ) { (device: try $0.int64(0), number: try $0.int(1)) }
        var book = CapBook()
        try CapLedger(db).look(Set(sent.map { .device($0.device) }), into: &book)
        for push in sent {
            check(run: run, device: push.device, number: push.number, page: book.pushes(.device(push.device)))
        }
        return sent.last?.device
    }
}
