package import Model

/// The daemon's sign of life, and what it would have others know.
package struct DaemonHeartbeat: Hashable, Sendable {
    package var owner: String
    package var startedAt: Timestamp
    package var heartbeatAt: Timestamp
    package var status: DaemonStatus

    package init(owner: String, startedAt: Timestamp, heartbeatAt: Timestamp, status: DaemonStatus) {
        self.owner = owner
        self.startedAt = startedAt
        self.heartbeatAt = heartbeatAt
        self.status = status
    }
}

/// How the daemon is, for `status` and metrics. Kept as JSON; keys are added, never given another meaning.
package struct DaemonStatus: Hashable, Sendable, Codable {
    package struct Problem: Hashable, Sendable, Codable {
        package var path: String
        /// As `validate` prints them.
        package var messages: [String]
        /// An earlier version of the file goes on being obeyed.
        package var keepsOld: Bool

        package init(path: String, messages: [String], keepsOld: Bool) {
            self.path = path
            self.messages = messages
            self.keepsOld = keepsOld
        }
    }

    /// Campaigns that are loaded, and how many of them start by themselves.
    package var campaigns = 0
    package var scheduled = 0
    /// Files that are wrong.
    package var problems: [Problem] = []
    /// When files were read last, and when the last time without a problem.
    package var readAt: Timestamp?
    package var readWellAt: Timestamp?
    package var nextCampaign: String?
    package var nextStart: Timestamp?
    /// Runs in its hands.
    package var running: [Int64] = []

    package init() {}
}

/// From when on somebody answers for a campaign's schedule. What it would have started before is not caught up: the file
/// was not there, or said something else.
package struct ScheduleMark: Hashable, Sendable {
    package var campaign: String
    /// Of the schedule as it was then; another one begins anew.
    package var scheduleHash: Int64
    package var since: Timestamp

    package init(campaign: String, scheduleHash: Int64, since: Timestamp) {
        self.campaign = campaign
        self.scheduleHash = scheduleHash
        self.since = since
    }
}
