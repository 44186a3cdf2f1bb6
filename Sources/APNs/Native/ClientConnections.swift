import HTTP2
import Synchronization

/// What the connections of one transport have in common: the TLS context with its sessions, and whose turn it is to
/// begin with which address. Any thread.
final class ClientConnections: Sendable {
    private struct State {
        var identity: TLSIdentity?
        var context: TLSContext?
        var turn = 0
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

    /// For the next connection. The files of a client certificate are read again, and renewed ones are used.
    func settings(for plan: LanePlan) throws(TransportError) -> ClientSettings {
        let identity = try identity()
        let endpoint = plan.endpoint
        let (context, turn) = try state.withLock { (state) throws(TransportError) in
            state.turn += 1
            if let context = state.context, state.identity == identity { return (context, state.turn) }
            let context = try Self.context(endpoint, trust, identity)
            state.context = context
            state.identity = identity
            return (context, state.turn)
        }
        var settings = ClientSettings(
            peer: TLSPeer(host: endpoint.bareHost, port: endpoint.port), tls: context)
        settings.turn = turn
        settings.firstStream = firstStream
        settings.connectDeadlineMs = max(1, plan.limits.connectDeadline.milliseconds)
        settings.unacknowledgedMaxMs = max(1, plan.limits.requestDeadline.milliseconds)
        return settings
    }

    private func identity() throws(TransportError) -> TLSIdentity? {
        guard case .certificate(let certificate) = credential else { return nil }
        do throws(CredentialError) {
            return try certificate.identity()
        } catch {
            throw .credentialUnusable(error.description)
        }
    }

    private static func context(
        _ endpoint: PushEndpoint, _ trust: String?, _ identity: TLSIdentity?
    ) throws(TransportError) -> TLSContext {
        do throws(TLSError) {
            return try TLSContext(clientTrusting: trust, identity: identity)
        } catch {
            switch error {
            case .badAuthorities, .noContext: throw .untrusted(endpoint, reason: error.description)
            case .badCertificate, .badPrivateKey:
                throw .credentialUnusable("the client certificate cannot be used: \(error.description)")
            }
        }
    }
}

extension PushEndpoint {
    /// Without the brackets of an IPv6 address.
    var bareHost: String {
        host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }

    /// The value of `:authority`.
    var authority: String {
        let host = bareHost.contains(":") ? "[\(bareHost)]" : bareHost
        return port == 443 ? host : "\(host):\(port)"
    }
}
