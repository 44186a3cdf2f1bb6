package import Logging
import Synchronization

/// Lanes on nghttp2 and OpenSSL: one event loop and one thread each, with exact knowledge of every stream
/// (`ProviderProtocol` section 8). It goes without a proxy: that is ``CurlTransport``'s job.
package struct NativeTransport: Transport {
    private let credential: PushCredential
    private let limits: LaneLimits
    private let trust: String?
    private let logger: Logger
    private let backOff: ConnectBackOff
    private let connections: ClientConnections

    /// - Parameters:
    ///   - trust: a file of CA certificates (PEM) in place of the system's.
    ///   - backOff: the wait between attempts to connect; tests shorten it.
    package init(
        credential: PushCredential, limits: LaneLimits, trust: String?, logger: Logger,
        backOff: ConnectBackOff = ConnectBackOff()
    ) {
        self.init(
            credential: credential, limits: limits, trust: trust, logger: logger, backOff: backOff, firstStream: 1)
    }

    /// `firstStream`: tests begin near the end of the numbers.
    init(
        credential: PushCredential, limits: LaneLimits, trust: String?, logger: Logger, backOff: ConnectBackOff,
        firstStream: Int32
    ) {
        self.credential = credential
        self.limits = limits
        self.trust = trust
        self.logger = logger
        self.backOff = backOff
        connections = ClientConnections(credential: credential, trust: trust, firstStream: firstStream)
    }

    package func lane(to endpoint: PushEndpoint, named name: String) -> any Lane {
        var logger = logger
        logger[metadataKey: "lane"] = "\(name)"
        let plan = LanePlan(
            name: name, endpoint: endpoint, credential: credential, limits: limits, trust: trust, logger: logger,
            backOff: backOff)
        let connections = connections
        return ThreadLane(plan: plan) { NativeLaneWorker.work($0, connections, $1, $2) }
    }
}
