package import Logging
package import Platform

/// Lanes on libcurl's multi interface: one multi handle and one thread each (`ProviderProtocol` section 9).
///
/// The proxy comes from the environment, as with curl (`https_proxy`, `no_proxy`).
package struct CurlTransport: Transport {
    /// The maximum number of requests in flight per lane, even if ``LaneLimits/streamsMax`` is greater. The cost per
    /// request of libcurl 7.88 was measured to grow with the number of requests in flight.
    package static let streamsMax = 100

    private let credential: PushCredential
    private let limits: LaneLimits
    private let trust: String?
    private let logger: Logger
    private let backOff: Backoff

    /// - Parameters:
    ///   - trust: a file of CA certificates (PEM) in place of the system's.
    ///   - backOff: the wait between attempts to connect; tests shorten it.
    package init(
        credential: PushCredential, limits: LaneLimits, trust: String?, logger: Logger,
        backOff: Backoff = .connecting
    ) {
        self.credential = credential
        self.limits = limits
        self.trust = trust
        self.logger = logger
        self.backOff = backOff
    }

    package func lane(to endpoint: PushEndpoint, named name: String) -> any Lane {
        var logger = logger
        logger[metadataKey: "lane"] = "\(name)"
        var limits = limits
        limits.streamsMax = max(1, min(limits.streamsMax, Self.streamsMax))
        let plan = LanePlan(
            name: name, endpoint: endpoint, credential: credential, limits: limits, trust: trust, logger: logger,
            backOff: backOff)
        return ThreadLane(plan: plan) { LaneDriver<CurlConnection>.run($0, (), $1, $2) }
    }
}
