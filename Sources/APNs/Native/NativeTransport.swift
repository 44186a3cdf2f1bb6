import HTTP2
package import Logging
package import Platform
import Synchronization

/// Lanes on nghttp2 and OpenSSL: one event loop and one thread each, with exact knowledge of every stream
/// (`ProviderProtocol` section 8). The transport supports no proxy; ``CurlTransport`` does.
package struct NativeTransport: Transport {
    private let credential: PushCredential
    private let limits: LaneLimits
    private let trust: String?
    private let logger: Logger
    private let backOff: Backoff
    private let settings: NativeClientSettings

    /// - Parameters:
    ///   - trust: a file of CA certificates (PEM) in place of the system's.
    ///   - backOff: the wait between attempts to connect; tests shorten it.
    package init(
        credential: PushCredential, limits: LaneLimits, trust: String?, logger: Logger,
        backOff: Backoff = .connecting
    ) {
        self.init(
            credential: credential, limits: limits, trust: trust, logger: logger, backOff: backOff, firstStream: 1)
    }

    /// - Parameter firstStream: the first stream id. Tests start near the maximum.
    init(
        credential: PushCredential, limits: LaneLimits, trust: String?, logger: Logger, backOff: Backoff,
        firstStream: Int32
    ) {
        self.credential = credential
        self.limits = limits
        self.trust = trust
        self.logger = logger
        self.backOff = backOff
        settings = NativeClientSettings(credential: credential, trust: trust, firstStream: firstStream)
    }

    package func lane(to endpoint: PushEndpoint, named name: String) -> any Lane {
        var logger = logger
        logger[metadataKey: "lane"] = "\(name)"
        let plan = LanePlan(
            name: name, endpoint: endpoint, credential: credential, limits: limits, trust: trust, logger: logger,
            backOff: backOff)
        let settings = settings
        return ThreadLane(plan: plan) { LaneDriver<NativeConnection>.run($0, settings, $1, $2) }
    }
}

/// Creates the settings of each connection of one transport. The connections share the TLS context with its sessions.
/// Each one tries the host's addresses in another order. Any thread may use it.
final class NativeClientSettings: Sendable {
    private struct State {
        var identity: TLSIdentity?
        var context: TLSContext?
        var rotation = 0
    }

    private let credential: PushCredential
    private let trust: String?
    private let firstStream: Int32
    private let state = Mutex(State())

    init(credential: PushCredential, trust: String?, firstStream: Int32) {
        self.firstStream = firstStream
        self.credential = credential
        self.trust = trust
    }

    /// Returns the settings for the next connection. Reads the client certificate's files again, in case they were
    /// renewed.
    func settings(for plan: LanePlan) throws(TransportError) -> ClientSettings {
        let endpoint = plan.endpoint
        let identity = try identity(for: endpoint)
        let (context, rotation) = try state.withLock { (state) throws(TransportError) in
            state.rotation += 1
            if let context = state.context, state.identity == identity { return (context, state.rotation) }
            let context = try Self.context(endpoint, trust, identity)
            state.context = context
            state.identity = identity
            return (context, state.rotation)
        }
        var settings = ClientSettings(
            peer: TLSPeer(host: endpoint.bareHost, port: endpoint.port), tls: context)
        settings.rotation = rotation
        settings.firstStream = firstStream
        settings.connectDeadlineMs = max(1, plan.limits.connectDeadline.milliseconds)
        settings.unacknowledgedMaxMs = max(1, plan.limits.requestDeadline.milliseconds)
        return settings
    }

    private func identity(for endpoint: PushEndpoint) throws(TransportError) -> TLSIdentity? {
        guard case .certificate(let certificate) = credential else { return nil }
        do throws(CredentialError) {
            return try certificate.identity()
        } catch {
            throw error.isPassing
                ? .unreachable(endpoint, reason: error.description) : .credentialUnusable(error.description)
        }
    }

    private static func context(
        _ endpoint: PushEndpoint, _ trust: String?, _ identity: TLSIdentity?
    ) throws(TransportError) -> TLSContext {
        do throws(TLSError) {
            return try TLSContext(clientTrusting: trust, identity: identity)
        } catch {
            if MemoryProbe.isShort { throw .unreachable(endpoint, reason: MemoryProbe.summary) }
            switch error {
            case .badAuthorities, .unreadableAuthorities, .noContext:
                throw .untrusted(endpoint, reason: error.description)
            case .badCertificate, .badPrivateKey:
                throw .credentialUnusable("the client certificate cannot be used: \(error.description)")
            }
        }
    }
}
