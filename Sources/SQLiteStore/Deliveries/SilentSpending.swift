import GRDB
import Store
import Model

/// Which devices have used up their silent budget at one moment. Devices are asked for in rising order of id: the ledger
/// is read along with them, so that nothing is kept.
final class SilentSpending {
    private let rows: RowStatement
    private let limit: Int
    private var hasRow: Bool

    init(_ db: Database, _ budget: Model.Configuration.SilentBudget, now: Timestamp) throws {
        rows = try RowStatement(
            db,
            """
            SELECT device_id, count(*) FROM silent_ledger
            WHERE settled_at IS NULL OR settled_at > :since
            GROUP BY device_id ORDER BY device_id
            """, arguments: ["since": (now - budget.window).milliseconds])
        limit = budget.limit
        hasRow = try rows.step()
    }

    func isUsedUp(for device: Int64) throws -> Bool {
        while hasRow, rows.int64(0) < device { hasRow = try rows.step() }
        let used = hasRow && rows.int64(0) == device ? rows.int(1) : 0
        return used >= limit
    }

    func close() { rows.reset() }
}
