import Model

/// The bound on the work of one call of ``DeliveryQueue/lease(_:)``.
///
/// All lanes of an app and environment lease one after the other. A run whose deliveries are all put off or suppressed
/// would block the others for its whole backlog, and would not notice a pause meanwhile. So a call ends after a
/// bounded number of rows and transactions. ``Lease/isCutShort`` then says that more rows remain to be read.
package struct LeaseRound {
    /// The maximum number of rows that one call reads if it leases none. A larger ``LeaseRequest/limit`` gets one
    /// transaction.
    package static let rowsMax = 1000
    /// The maximum number of transactions of one call. A pace makes the limit small, so each transaction reads few
    /// rows, and each transaction waits for the disk.
    package static let transactionsMax = 16

    private var rows = 0
    private var transactions = 0
    private var suppressions: [SuppressionReason: Int] = [:]
    private var moved = 0

    package init() {}

    /// Counts a transaction that read at most `limit` rows.
    ///
    /// - Returns: the result of the call, for all its transactions; `nil` if the call must start another transaction.
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
