import Logging

/// What a lane is to do, fixed when it is made.
struct LanePlan: Sendable {
    var name: String
    var endpoint: PushEndpoint
    var credential: PushCredential
    var limits: LaneLimits
    var trust: String?
    var logger: Logger
    var backOff: ConnectBackOff
}

extension TransportError {
    /// A connection that was made and ended before any answer: a refused client certificate shows as this.
    static func afterConnect(_ plan: LanePlan, _ words: String) -> TransportError {
        if case .certificate = plan.credential {
            return .credentialUnusable(
                "\(plan.endpoint) ends the connection (\(words)); is the certificate for this environment and topic?")
        }
        return .unreachable(plan.endpoint, reason: words)
    }
}
