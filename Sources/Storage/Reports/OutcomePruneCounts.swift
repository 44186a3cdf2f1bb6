/// What pruning outcomes folded into summaries and deleted, or would.
package struct OutcomePruneCounts: Hashable, Sendable {
    package var runs = 0
    package var deliveries = 0
    /// Old enough, but their account does not close: the rows are needed to find out why. See ``Store/check(_:)``.
    package var kept = 0

    package init() {}
}

/// How much of the store's file is in use.
package struct StoreSize: Hashable, Sendable {
    package var bytes: Int
    /// Of them, free for whatever is written next.
    package var freeBytes: Int
}
