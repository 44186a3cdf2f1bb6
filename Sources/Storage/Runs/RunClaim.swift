package import Model

package enum RunClaim: Hashable, Sendable {
    case claimed
    /// Another owner has the run and was heard of at that time.
    case held(by: String, heartbeat: Timestamp)
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
