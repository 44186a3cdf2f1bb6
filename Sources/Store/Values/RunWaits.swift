package import Model

/// The causes for which the unsent deliveries of a run wait.
package struct RunWaits: Hashable, Sendable {
    package enum Cause: String, Hashable, Sendable, CaseIterable {
        /// A retry after an unsuccessful attempt.
        case retry
        case quietHours = "quiet_hours"
        case silentBudget = "silent_budget"
        case frequencyCap = "frequency_cap"
        /// The start of their wave.
        case wave
    }

    package struct Group: Hashable, Sendable {
        package var cause: Cause
        package var deliveries: Int
        /// Whether more than ``deliveries`` wait, because the count stopped at a limit.
        package var isMore = false
        package var first: Timestamp
        package var last: Timestamp
        /// For a wave: the devices' time zones, most devices first, as far as they were read.
        package var zones: [String]

        package init(cause: Cause, deliveries: Int, first: Timestamp, last: Timestamp, zones: [String] = []) {
            self.cause = cause
            self.deliveries = deliveries
            self.first = first
            self.last = last
            self.zones = zones
        }
    }

    /// The groups by cause, and each wave separately; the nearest first.
    package var groups: [Group]
    /// Whether more deliveries wait, for a later time than all of these. The groups are complete up to their last
    /// moment.
    package var hasLater: Bool
    /// The endpoints to which the run's sender sends nothing for now.
    package var holds: [EndpointHold]

    package init(groups: [Group] = [], hasLater: Bool = false, holds: [EndpointHold] = []) {
        self.groups = groups
        self.hasLater = hasLater
        self.holds = holds
    }
}

/// An endpoint with errors, which gets no requests until its next try.
package struct EndpointHold: Hashable, Sendable {
    package var environment: PushEnvironment
    /// `api.push.apple.com:443`.
    package var endpoint: String
    /// Whether the endpoint gives no responses and is tried continuously.
    package var isRetrying: Bool { status == nil && nextTryAt <= since }
    /// The status of its last response; `nil` if there was none.
    package var status: Int?
    package var since: Timestamp
    package var nextTryAt: Timestamp

    package init(
        environment: PushEnvironment, endpoint: String, status: Int?, since: Timestamp, nextTryAt: Timestamp
    ) {
        self.environment = environment
        self.endpoint = endpoint
        self.status = status
        self.since = since
        self.nextTryAt = nextTryAt
    }
}

/// The wait of a sender until its store accepts writes again. The sender starts nothing meanwhile.
package struct StoreWait: Hashable, Sendable {
    package enum Reason: String, Hashable, Sendable, CaseIterable {
        case locked
        case diskFull = "disk_full"
        /// The disk fails, or its quota is used up.
        case failing
        /// The server of the store does not respond.
        case away
        /// The server of the store refuses the login that it accepted before.
        case refused
    }

    package var since: Timestamp
    package var reason: Reason

    package init(since: Timestamp, reason: Reason) {
        self.since = since
        self.reason = reason
    }

    /// - Parameter error: an error that may pass, see ``StoreError/isPassing``.
    package init(since: Timestamp, _ error: StoreError) {
        self.since = since
        reason =
            switch error {
            case .diskFull, .journalFull: .diskFull
            case .inputOutput, .readOnlyFileSystem: .failing
            case .unreachable, .outcomeUnknown: .away
            case .accessWithdrawn: .refused
            default: .locked
            }
    }
}
