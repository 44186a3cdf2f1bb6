package import Model

/// The daemon's heartbeat, and the status that it publishes.
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

/// The status of the daemon, for `status` and metrics. It is stored as JSON. Later versions may add keys, but never
/// change the meaning of a key.
package struct DaemonStatus: Hashable, Sendable, Codable {
    package struct Problem: Hashable, Sendable, Codable {
        package var path: String
        /// The messages, as `validate` prints them.
        package var messages: [String]
        /// Whether an earlier version of the file stays in use.
        package var keepsOld: Bool

        package init(path: String, messages: [String], keepsOld: Bool) {
            self.path = path
            self.messages = messages
            self.keepsOld = keepsOld
        }
    }

    /// The number of loaded campaigns, and of those that start automatically.
    package var campaigns = 0
    package var scheduled = 0
    /// The files with errors.
    package var problems: [Problem] = []
    /// When files were read last, and when they were last read without a problem.
    package var readAt: Timestamp?
    package var readWellAt: Timestamp?
    package var nextCampaign: String?
    package var nextStart: Timestamp?
    /// The runs that the daemon carries out.
    package var running: [Int64] = []

    package init() {}
}

/// The time from which a campaign's schedule is observed. Earlier occurrences are not started, because the campaign's
/// file did not exist then, or had another schedule.
package struct ScheduleMark: Hashable, Sendable {
    package var campaign: String
    /// The hash of the schedule at that time. A changed schedule gets a new mark.
    package var scheduleHash: Int64
    package var since: Timestamp

    package init(campaign: String, scheduleHash: Int64, since: Timestamp) {
        self.campaign = campaign
        self.scheduleHash = scheduleHash
        self.since = since
    }
}

/// The state of a campaign's feed after earlier polls.
package struct FeedState: Hashable, Sendable {
    package var url: String
    /// The values from the server's last response, so that the server can answer "not modified".
    package var etag: String?
    package var lastModified: String?
    package var polledAt: Timestamp
    /// `false` until this URL has returned a feed for the first time.
    package var isRead: Bool
    /// The number of polls without a usable response since the last good one.
    package var failures: Int
    /// The problem of the last poll, in words for a person; `nil` if it was good.
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

/// A message about the outcome of a run, or about the approval of a plan, that one webhook has not yet received.
package struct WebhookMessage: Hashable, Sendable {
    package var id: Int64
    /// The id of the audit event that the message reports. It is the same for all webhooks and all attempts.
    package var event: Int64
    package var url: String
    /// 0 in a message about an approval.
    package var run: Int64
    /// The number of the approval; `nil` in a message about a run.
    package var approval: Int64?
    package var kind: Configuration.Webhook.Event
    package var reason: String?
    package var at: Timestamp
    /// The number of attempts, including the one for which the message was claimed.
    package var attempts: Int

    package init(
        id: Int64, event: Int64, url: String, run: Int64, kind: Configuration.Webhook.Event, reason: String?,
        at: Timestamp, attempts: Int, approval: Int64? = nil
    ) {
        self.approval = approval
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
