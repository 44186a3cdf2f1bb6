/// Where a delivery stands in its run's account.
package enum DeliveryStanding: String, Hashable, Sendable, CaseIterable {
    case pending, leased, accepted, rejected, unknown, suppressed
}

/// Which deliveries of a run somebody asks for.
package struct DeliveryFilter: Hashable, Sendable {
    /// So many rows of a run are looked at for one page, where no index leads to those asked for.
    package static let rowsMax = 20_000

    /// Nil: all.
    package var standing: DeliveryStanding?
    /// As APNs or we give it; nil: any, and none.
    package var reason: String?

    package init(standing: DeliveryStanding? = nil, reason: String? = nil) {
        self.standing = standing
        self.reason = reason
    }
}

/// Which runs somebody asks for.
package struct RunFilter: Hashable, Sendable {
    package var campaign: String?
    /// Empty: in any.
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

/// Which entries of the audit somebody asks for.
package struct EventFilter: Hashable, Sendable {
    package var run: Int64?
    /// The whole name.
    package var actor: String?
    /// An ``EventKind`` by its word.
    package var kind: String?
    package var since: Timestamp?

    package init(run: Int64? = nil, actor: String? = nil, kind: String? = nil, since: Timestamp? = nil) {
        self.run = run
        self.actor = actor
        self.kind = kind
        self.since = since
    }
}
