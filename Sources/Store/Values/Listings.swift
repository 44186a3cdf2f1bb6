package import Model

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

/// Some deliveries of a run, in order of device.
package struct DeliveryPage: Hashable, Sendable {
    package struct Entry: Hashable, Sendable {
        package var outcome: OutcomeRow
        package var isLeased: Bool
        /// Of one that waits.
        package var notBefore: Timestamp?

        package init(outcome: OutcomeRow, isLeased: Bool, notBefore: Timestamp?) {
            self.outcome = outcome
            self.isLeased = isLeased
            self.notBefore = notBefore
        }
    }

    package var entries: [Entry]
    /// The cursor of the next page; nil: this was the last.
    package var next: Int64?

    package init(entries: [Entry], next: Int64?) {
        self.entries = entries
        self.next = next
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

/// Some entries of the audit, newest first.
package struct EventPage: Hashable, Sendable {
    package var events: [StoreEvent]
    /// The cursor of the next page; nil: this was the last.
    package var next: Int64?

    package init(events: [StoreEvent], next: Int64?) {
        self.events = events
        self.next = next
    }
}

/// Some devices, in order of id.
package struct DevicePage: Hashable, Sendable {
    package var devices: [StoredDevice]
    /// The cursor of the next page; nil: this was the last.
    package var next: Int64?

    package init(devices: [StoredDevice], next: Int64?) {
        self.devices = devices
        self.next = next
    }
}

/// What became of a device that somebody removed.
package enum DeviceRemoval: Hashable, Sendable {
    case deleted
    /// Nothing is sent to it any more, and its tags, segments, user and attributes are gone. Its row stays until it is
    /// pruned, so that registering it again does not open its silent budget.
    case emptied
}
