/// The standing of a delivery in its run's counts.
package enum DeliveryStanding: String, Hashable, Sendable, CaseIterable {
    case pending, leased, accepted, rejected, unknown, suppressed
}

/// A query for deliveries of a run.
package struct DeliveryFilter: Hashable, Sendable {
    /// The maximum number of a run's rows that are read for one page if no index finds the matching rows.
    package static let rowsMax = 10_000

    /// `nil` for all.
    package var standing: DeliveryStanding?
    /// The reason given by APNs or Fanfare. `nil` matches every delivery, with or without a reason.
    package var reason: String?

    package init(standing: DeliveryStanding? = nil, reason: String? = nil) {
        self.standing = standing
        self.reason = reason
    }
}

/// A query for runs.
package struct RunFilter: Hashable, Sendable {
    package var campaign: String?
    /// The states to include. Empty for any state.
    package var states: Set<RunState>
    package var createdFrom: Timestamp?
    package var createdBefore: Timestamp?
    package var includesTests: Bool

    package init(
        campaign: String? = nil, states: Set<RunState> = [], createdFrom: Timestamp? = nil,
        createdBefore: Timestamp? = nil, includesTests: Bool = false
    ) {
        self.campaign = campaign
        self.states = states
        self.createdFrom = createdFrom
        self.createdBefore = createdBefore
        self.includesTests = includesTests
    }
}

/// A query for audit entries.
package struct EventFilter: Hashable, Sendable {
    package var run: Int64?
    /// The exact name.
    package var actor: String?
    /// The raw value of an ``EventKind``.
    package var kind: String?
    package var since: Timestamp?

    package init(run: Int64? = nil, actor: String? = nil, kind: String? = nil, since: Timestamp? = nil) {
        self.run = run
        self.actor = actor
        self.kind = kind
        self.since = since
    }
}
