import GRDB
package import Model

extension Store {
    /// Checks every background push in the ledger against the budget: when it was reserved, fewer than `limit` others
    /// of its device may have been inside the window. Entries older than two windows may be pruned already.
    package func verifyLedger(_ budget: Model.Configuration.SilentBudget) async throws -> LedgerCheck {
        try await read { db in
            let rows = try RowStatement(
                db,
                """
                SELECT device_id, reserved_at, settled_at, attempt FROM silent_ledger
                ORDER BY device_id, reserved_at, attempt DESC
                """)
            defer { rows.reset() }
            var check = LedgerCheck(devices: 0, pushes: 0, violations: 0)
            var device: Int64 = 0
            var ends: [Int64] = []
            while try rows.step() {
                if rows.int64(0) != device {
                    device = rows.int64(0)
                    ends.removeAll(keepingCapacity: true)
                    check.devices += 1
                }
                // Inherited from a merged device: it counts, but was not this device's to decide.
                if rows.int64(3) > 0 {
                    let opens = rows.int64(1) - budget.window.wholeMilliseconds
                    if ends.count(where: { $0 > opens }) >= budget.limit { check.violations += 1 }
                    check.pushes += 1
                }
                ends.append(rows.int64OrNil(2) ?? .max)
            }
            return check
        }
    }
}
