package import Model

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
}
