/// The keys of a log line's metadata. A line's message is constant. The variable facts are in the metadata.
package enum LogKey: String, Hashable, Sendable, CaseIterable {
    // The subject of a line.
    case campaign = "campaign"
    case run = "run"
    /// A run's occurrence within its campaign.
    case occurrence = "occurrence"
    case lane = "lane"
    /// The host:port of APNs, or of its substitute.
    case endpoint = "endpoint"
    /// The start of something that is still in progress.
    case since = "since"
    /// The host:port that the HTTP server listens on.
    case address = "address"
    /// The URL of a webhook, without its query.
    case url = "url"
    /// The environment of APNs: production or sandbox.
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

    // The event.
    /// An error that was thrown.
    case error = "error"
    /// The reason, as text.
    case reason = "reason"
    /// All problems of a file.
    case problems = "problems"
    /// A valid but questionable fact.
    case warning = "warning"
    /// The way in which the sending process ended its work on a run.
    case end = "end"
    /// An error code of HTTP/2 or libcurl.
    case code = "code"
    /// The last stream id that a GOAWAY promises to answer.
    case lastStream = "last_stream"

    // Counts.
    /// The deliveries of a run by outcome. `left` counts those without an outcome.
    case audience = "audience"
    case accepted = "accepted"
    case rejected = "rejected"
    case unknown = "unknown"
    case suppressed = "suppressed"
    case left = "left"
    /// The time that this process worked on the run.
    case seconds = "seconds"
    case campaigns = "campaigns"
    case runs = "runs"
    case outcomes = "outcomes"
    /// Reports of apps.
    case reports = "reports"
    case devices = "devices"
    /// Messages to webhooks.
    case messages = "messages"
    /// Items of a feed.
    case items = "items"
    /// Files that changed.
    case changed = "changed"
    /// Connects that failed in a row.
    case failures = "failures"
}
