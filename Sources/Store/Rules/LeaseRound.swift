import Model

/// The bound on the work of one call of ``DeliveryQueue/lease(_:)``.
///
/// All lanes of an app and environment lease through one gate. A run that only puts off or suppresses would hold the
/// gate for its whole backlog, and would not see a pause meanwhile. So a call ends after a bounded number of rows and
/// transactions. ``Lease/isCutShort`` then says that more rows are to be read.
package struct LeaseRound {
    /// The maximum number of rows that one call reads if it leases none. A larger ``LeaseRequest/limit`` is read once.
    package static let rowsMax = 1000
    /// The maximum number of transactions of one call. A lease with a small limit, as with a pace, reads few rows in
    /// each transaction, and each waits for the disk.
    package static let transactionsMax = 16

    private var rows = 0
    private var transactions = 0
    private var suppressions: [SuppressionReason: Int] = [:]
    private var moved = 0

    package init() {}

    /// Counts a transaction that read no more than `limit` rows.
    ///
    /// - Returns: the result of the call, for all its transactions; `nil` if the call makes another transaction.
    package mutating func add(_ lease: Lease, isExhausted: Bool, afterLooking limit: Int) -> Lease? {
        rows += limit
        transactions += 1
        suppressions.merge(lease.suppressions, uniquingKeysWith: +)
        moved += lease.moved
        let isOpen = lease.deliveries.isEmpty && !isExhausted
        let mayContinue = rows < Self.rowsMax && transactions < Self.transactionsMax
        guard !(isOpen && mayContinue) || Task.isCancelled else { return nil }
        var lease = lease
        lease.suppressions = suppressions
        lease.moved = moved
        lease.isCutShort = isOpen
        return lease
    }

    /// Returns the limit of the next transaction.
    package func limit(_ limit: Int) -> Int { min(limit, max(1, Self.rowsMax - rows)) }
}
