package import Model

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

/// One thing that one webhook is still to be told: a run has come into a state.
package struct WebhookMessage: Hashable, Sendable {
    package var id: Int64
    /// Of the line in the audit trail that says the same; one for all webhooks and all attempts.
    package var event: Int64
    package var url: String
    package var run: Int64
    package var state: RunState
    package var reason: String?
    package var at: Timestamp
    /// The one it was taken for included.
    package var attempts: Int

    package init(
        id: Int64, event: Int64, url: String, run: Int64, state: RunState, reason: String?, at: Timestamp, attempts: Int
    ) {
        self.id = id
        self.event = event
        self.url = url
        self.run = run
        self.state = state
        self.reason = reason
        self.at = at
        self.attempts = attempts
    }
}
