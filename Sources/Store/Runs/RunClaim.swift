package import Model

package enum RunClaim: Hashable, Sendable {
    case claimed
    /// Another owner has the run and was heard of at that time.
    case held(by: String, heartbeat: Timestamp)
    /// A person paused it: only ``Store/change(_:to:reason:now:by:staleAfter:)`` to `running` lets it go on.
    case paused(by: String, reason: String?)
}

/// What became of the deliveries a crash left in flight.
package struct RecoveryCounts: Hashable, Sendable {
    package var leases = 0
    /// Pending again; their attempt counts.
    package var resent = 0
    /// Unknown for good.
    package var unknown = 0

    package init() {}
}

/// A run whose process ended without giving it up.
package struct AbandonedRun: Hashable, Sendable {
    package var run: Int64
    /// The process that had it.
    package var owner: String
    package var recovered: RecoveryCounts

    package init(run: Int64, owner: String, recovered: RecoveryCounts) {
        self.run = run
        self.owner = owner
        self.recovered = recovered
    }
}

/// When an owner of a run, or the daemon, is taken for dead although nothing else is known of its process.
package enum OwnerLiveness {
    /// Without a heartbeat for this long.
    package static let staleAfter: Duration = .seconds(15)
}
