import GRDB
import Store
import Model

/// The silent ledger against deliveries and leases: a budget that is kept is worth nothing unless every background push
/// is in the ledger, and nothing stays in it that is over.
struct LedgerCoverCheck {
    static let name = "silent_ledger"
    static let promise = "every background push of late is in the silent ledger, and what is in flight there is leased"

    private(set) var faults: [StoreFault] = []

    init(_ db: Database, budgets: SilentBudgets) throws {
        try findUncovered(db, budgets)
        try findStranded(db)
    }

    /// Older ones may be pruned: when the device got its next, or on the day its outcomes were.
    private mutating func findUncovered(_ db: Database, _ budgets: SilentBudgets) throws {
        let latest = try Int64.fetchOne(db, sql: "SELECT max(reserved_at) FROM silent_ledger") ?? 0
        let runs = try Row.fetchAll(
            db,
            sql: """
                SELECT id, json_extract(definition, '$.campaign.topic') FROM run
                WHERE json_extract(definition, '$.campaign.pushType') = 'background' ORDER BY id
                """)
        for run in runs {
            let window = budgets[run[1]].window
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT delivery.device_id, delivery.attempt FROM delivery
                    JOIN device ON device.id = delivery.device_id
                    LEFT JOIN silent_ledger ON silent_ledger.device_id = delivery.device_id
                        AND silent_ledger.run_id = delivery.run_id AND silent_ledger.attempt = delivery.attempt
                    WHERE delivery.run_id = :run AND delivery.state IN (1, 3) AND delivery.changed_at > :since
                        AND silent_ledger.device_id IS NULL
                    """, arguments: ["run": run[0] as Int64, "since": latest - window.wholeMilliseconds])
            while let row = try rows.next() {
                faults.append(
                    StoreFault(
                        run: run[0], device: row[0], "attempt \(row[1] as Int) was sent and is not in the silent ledger"
                    ))
            }
        }
    }

    private mutating func findStranded(_ db: Database) throws {
        let leased = try Self.leased(db)
        let rows = try RowStatement(
            db,
            """
            SELECT device_id, run_id, attempt FROM silent_ledger WHERE settled_at IS NULL
            """)
        defer { rows.reset() }
        while try rows.step() {
            let slot = Slot(device: rows.int64(0), run: rows.int64(1), attempt: rows.int(2))
            guard !leased.contains(slot) else { continue }
            faults.append(
                StoreFault(
                    run: slot.run, device: slot.device,
                    "attempt \(slot.attempt) holds a slot of the silent budget, but is in no lease"))
        }
    }

    private struct Slot: Hashable {
        var device: Int64
        var run: Int64
        var attempt: Int
    }

    private static func leased(_ db: Database) throws -> Set<Slot> {
        let rows = try RowStatement(db, "SELECT run_id, entries FROM lease WHERE is_silent = 1")
        defer { rows.reset() }
        var slots: Set<Slot> = []
        while try rows.step() {
            for entry in LeaseEntry.unpack(rows.bytes(1)) {
                slots.insert(Slot(device: entry.device, run: rows.int64(0), attempt: entry.attempt))
            }
        }
        return slots
    }
}

/// The budget of each topic.
struct SilentBudgets {
    var byTopic: [String: Model.Configuration.SilentBudget]

    /// The usual budget where nothing is configured.
    subscript(topic: String?) -> Model.Configuration.SilentBudget {
        topic.flatMap { byTopic[$0] } ?? Model.Configuration.SilentBudget()
    }
}
