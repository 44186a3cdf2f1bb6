import GRDB
import Store
import Model

/// Reads the silent ledger against its own rule: when a push was reserved, fewer than `limit` others of its device may
/// have been inside the window. Entries older than two windows may be pruned already.
struct LedgerScan {
    static let name = "silent_budget"
    static let promise = "no device gets more background pushes in a window than the budget allows"

    private(set) var devices = 0
    private(set) var pushes = 0
    private(set) var violations: [StoreFault] = []

    /// - Parameter budget: by topic; nil for the ledger of a device that is not stored any more.
    init(_ db: Database, _ budget: (_ topic: String?) -> Model.Configuration.SilentBudget) throws {
        let rows = try RowStatement(
            db,
            """
            SELECT silent_ledger.device_id, reserved_at, settled_at, attempt, run_id, topic.name
            FROM silent_ledger
            LEFT JOIN device ON device.id = silent_ledger.device_id
            LEFT JOIN topic ON topic.id = device.topic_id
            ORDER BY silent_ledger.device_id, reserved_at, attempt DESC
            """)
        defer { rows.reset() }
        var device: Int64 = 0
        var allowed = Model.Configuration.SilentBudget()
        var ends: [Int64] = []
        while try rows.step() {
            if rows.int64(0) != device {
                device = rows.int64(0)
                allowed = budget(rows.text(5))
                ends.removeAll(keepingCapacity: true)
                devices += 1
            }
            // Inherited from a merged device: it counts, but was not this device's to decide.
            if rows.int64(3) > 0 {
                let opens = rows.int64(1) - allowed.window.wholeMilliseconds
                let others = ends.count { $0 > opens }
                if others >= allowed.limit { violations.append(Self.violation(rows, device, others, allowed)) }
                pushes += 1
            }
            ends.append(rows.int64OrNil(2) ?? .max)
        }
    }

    private static func violation(
        _ rows: RowStatement, _ device: Int64, _ others: Int, _ budget: Model.Configuration.SilentBudget
    ) -> StoreFault {
        let at = Timestamp(milliseconds: rows.int64(1)).iso8601
        return StoreFault(
            run: rows.int64(4), device: device,
            "a background push at \(at) followed \(others) others within \(WrittenDuration.text(budget.window)), "
                + "\(budget.limit) in all are allowed")
    }
}
