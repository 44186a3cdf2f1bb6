/// The bound on the work of one call of ``DeliveryQueue/lease(_:)``.
///
/// All lanes of an app and environment lease through one gate. A run that only puts off or suppresses would hold the gate
/// for its whole backlog, and would not see a pause meanwhile. So a call ends after a bounded number of rows and
/// transactions, and says with ``Lease/isCutShort`` that more rows are to be looked at.
package struct LeaseTurn {
    /// Rows looked at in one call that leases none of them. A larger ``LeaseRequest/limit`` counts once.
    package static let rowsMax = 1000
    /// A lease with a small limit, as with a pace, looks at few rows in each transaction, and each waits for the disk.
    package static let transactionsMax = 16

    private var rows = 0
    private var transactions = 0

    package init() {}

    /// Counts a transaction that looked at no more than `limit` rows. Returns whether the call may make another one.
    package mutating func mayContinue(afterLooking limit: Int) -> Bool {
        rows += limit
        transactions += 1
        return rows < Self.rowsMax && transactions < Self.transactionsMax
    }

    /// The limit of the next transaction.
    package func limit(_ limit: Int) -> Int { min(limit, max(1, Self.rowsMax - rows)) }
}
