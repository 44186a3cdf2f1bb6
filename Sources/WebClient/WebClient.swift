/// Requests to other people's web servers through libcurl: feeds are fetched with it and webhooks posted.
///
/// Certificates are always verified. Each request has a thread of its own for as long as it takes, so that a slow
/// server holds up nothing else; callers bound how many they start at once. Cancelling the task ends the request
/// within about a second.
package struct WebClient: Sendable {
    private let limits: WebLimits
    private let trust: String?
    private let agent: String

    /// - Parameters:
    ///   - trust: a CA file (PEM) in place of the system's, for a server of one's own.
    ///   - agent: what servers see as `User-Agent`.
    package init(limits: WebLimits = WebLimits(), trust: String? = nil, agent: String = "fanfare") {
        self.limits = limits
        self.trust = trust
        self.agent = agent
    }

    /// Returns the answer, whatever its status. Throws where there is none.
    package func send(_ request: WebRequest) async throws(WebError) -> WebResponse {
        let transfer = Transfer(request, limits: limits, trust: trust, agent: agent)
        let result = await withTaskCancellationHandler {
            await RequestThread.run { transfer.perform() }
        } onCancel: {
            transfer.cancel()
        }
        return try result.get()
    }
}
