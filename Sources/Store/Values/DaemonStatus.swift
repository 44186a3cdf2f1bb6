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

/// What is known of a campaign's feed from earlier polls.
package struct FeedState: Hashable, Sendable {
    package var url: String
    /// As the server gave them, to be told "not modified".
    package var etag: String?
    package var lastModified: String?
    package var polledAt: Timestamp
    /// False until this address has answered with a feed for the first time.
    package var isRead: Bool
    /// Polls without a usable answer since the last good one.
    package var failures: Int
    /// Of the last poll, in words for a person; nil: it was good.
    package var problem: String?

    package init(
        url: String, etag: String? = nil, lastModified: String? = nil, polledAt: Timestamp, isRead: Bool = true,
        failures: Int = 0, problem: String? = nil
    ) {
        self.url = url
        self.etag = etag
        self.lastModified = lastModified
        self.polledAt = polledAt
        self.isRead = isRead
        self.failures = failures
        self.problem = problem
    }
}

/// One thing that one webhook is still to be told: what has become of a run.
package struct WebhookMessage: Hashable, Sendable {
    package var id: Int64
    /// Of the line in the audit trail that says the same; one for all webhooks and all attempts.
    package var event: Int64
    package var url: String
    package var run: Int64
    package var kind: Configuration.Webhook.Event
    package var reason: String?
    package var at: Timestamp
    /// The one it was taken for included.
    package var attempts: Int

    package init(
        id: Int64, event: Int64, url: String, run: Int64, kind: Configuration.Webhook.Event, reason: String?,
        at: Timestamp, attempts: Int
    ) {
        self.id = id
        self.event = event
        self.url = url
        self.run = run
        self.kind = kind
        self.reason = reason
        self.at = at
        self.attempts = attempts
    }
}
