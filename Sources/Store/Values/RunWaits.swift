package import Model

/// What the deliveries of a run that are not sent yet wait for.
package struct RunWaits: Hashable, Sendable {
    package enum Cause: String, Hashable, Sendable, CaseIterable {
        /// A next attempt, after an answer that asks for one.
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
        /// More than ``deliveries`` wait: they were counted up to a limit only.
        package var isMore = false
        package var first: Timestamp
        package var last: Timestamp
        /// Of a wave: the devices' time zones, most devices first, as far as they were looked at.
        package var zones: [String]

        package init(cause: Cause, deliveries: Int, first: Timestamp, last: Timestamp, zones: [String] = []) {
            self.cause = cause
            self.deliveries = deliveries
            self.first = first
            self.last = last
            self.zones = zones
        }
    }

    /// By cause, each wave by itself; the nearest first.
    package var groups: [Group]
    /// More wait, for something later than all of these; the groups are complete through their last moment.
    package var hasLater: Bool
    /// Endpoints that are left alone for now, as the run's sender says.
    package var holds: [EndpointHold]

    package init(groups: [Group] = [], hasLater: Bool = false, holds: [EndpointHold] = []) {
        self.groups = groups
        self.hasLater = hasLater
        self.holds = holds
    }
}

/// An endpoint in trouble, left alone until its next try.
package struct EndpointHold: Hashable, Sendable {
    package var environment: PushEnvironment
    /// `api.push.apple.com:443`.
    package var endpoint: String
    /// The endpoint gives no responses, and is tried all the time.
    package var isRetrying: Bool { status == nil && nextTryAt <= since }
    /// Of its last answer; nil: there was none.
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

/// A sender waits until its store takes again what it has to record; it starts nothing meanwhile.
package struct StoreWait: Hashable, Sendable {
    package enum Reason: String, Hashable, Sendable, CaseIterable {
        case locked
        case diskFull = "disk_full"
        /// The disk fails, or its quota is used up.
        case failing
    }

    package var since: Timestamp
    package var reason: Reason

    package init(since: Timestamp, reason: Reason) {
        self.since = since
        self.reason = reason
    }

    /// - Parameter error: one that is passing.
    package init(since: Timestamp, _ error: StoreError) {
        self.since = since
        reason =
            switch error {
            case .diskFull: .diskFull
            case .inputOutput, .readOnlyFileSystem: .failing
            default: .locked
            }
    }
}
