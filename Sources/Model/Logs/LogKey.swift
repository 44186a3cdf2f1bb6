/// The names of facts in log lines. A line's message is constant; what differs stands in its metadata under these.
package enum LogKey: String, Hashable, Sendable, CaseIterable {
    // What a line is about.
    case campaign = "campaign"
    case run = "run"
    /// A run's occurrence within its campaign.
    case occurrence = "occurrence"
    case lane = "lane"
    /// host:port of APNs, or of what stands in for it.
    case endpoint = "endpoint"
    /// When something began that still goes on.
    case since = "since"
    /// host:port that the HTTP server listens on.
    case address = "address"
    /// Of a webhook, without its query.
    case url = "url"
    /// production or sandbox.
    case environment = "environment"
    /// A key by its id and team, or a certificate's file.
    case credential = "credential"
    case path = "path"
    /// The version of this program.
    case version = "version"
    /// A part of the daemon.
    case part = "part"
    /// The path of the store.
    case store = "store"

    // What happened to it.
    /// An error that was thrown.
    case error = "error"
    /// Why, in words.
    case reason = "reason"
    /// Everything wrong with a file.
    case problems = "problems"
    /// What is right, but not as it should be.
    case warning = "warning"
    /// How a run ended for the process that sent it.
    case end = "end"
    /// An error code of HTTP/2 or libcurl.
    case code = "code"
    /// The last stream id that a GOAWAY promises to answer.
    case lastStream = "last_stream"

    // How many.
    /// Deliveries of a run by what became of them; `left` are those without an outcome.
    case audience = "audience"
    case accepted = "accepted"
    case rejected = "rejected"
    case unknown = "unknown"
    case suppressed = "suppressed"
    case left = "left"
    /// How long this process worked on it.
    case seconds = "seconds"
    case campaigns = "campaigns"
    case runs = "runs"
    case outcomes = "outcomes"
    /// Items of a feed.
    case items = "items"
    /// Files that changed.
    case changed = "changed"
    /// Connects that failed in a row.
    case failures = "failures"
}
