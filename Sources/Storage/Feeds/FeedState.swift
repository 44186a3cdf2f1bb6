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
