/// One HTTP/2 connection to APNs with its queue, its thread, and a deadline per request.
///
/// Three parties use a lane at the same time: a child task in ``run()``, one sender, one receiver. Batches cross the
/// thread boundary, not single pushes.
package protocol Lane: Sendable {
    /// Connects and works until ``finish()`` was called and every push has its completion. After a cancellation, no new
    /// request starts. Requests on the wire get up to `drainLimit` for their responses, and the rest are `notSent`.
    /// Throws if the host cannot be reached or trusted, or if the credential is unusable. Every accepted push still
    /// gets its completion.
    func run() async throws(TransportError)

    /// Hands over a batch. Suspends while at least `outstandingMax` pushes have no completion taken by
    /// ``completions()``. Returns false if the lane accepts no batch any more. It has then accepted no push of the
    /// batch.
    func send(_ batch: PushBatch) async -> Bool

    /// Returns the completions since the last call in order of arrival. Waits for the first one. Returns `nil` if the
    /// lane has ended and all completions were returned.
    func completions() async -> [PushCompletion]?

    /// Announces that no more batches will come. Idempotent.
    func finish()

    /// A snapshot of the lane, for progress and metrics.
    var status: LaneStatus { get }
}

/// A factory for lanes of one kind: `curl` or `native`.
package protocol Transport: Sendable {
    func lane(to endpoint: PushEndpoint, named name: String) -> any Lane
}

package struct LaneStatus: Sendable, Hashable {
    /// The number of started requests without a response.
    package var inFlight = 0
    /// The number of accepted pushes that were not started.
    package var queued = 0
    /// The number of streams that the peer and Fanfare's own limit allow.
    package var streamLimit = 1
    /// The number of connections opened so far.
    package var connects = 0
    /// The current number of failed attempts in a row.
    package var connectFailures = 0
    /// The service's own reason for ending the last connection. `curl` does not learn it.
    package var goAway: String?
    package init() {}
}

/// The reason why a push has no complete response.
package enum TransportFault: Hashable, Sendable, CustomStringConvertible {
    case deadline
    /// The connection ended before the response.
    case connectionLost(String)
    case streamRefused
    /// The request was not written. The lane or its run was stopped, or the credential is unusable.
    case stopped
    case unreachable(String)
    /// The sender exited while the request was on the wire.
    case interrupted

    package var description: String {
        switch self {
        case .deadline: "DeadlineExceeded"
        case .connectionLost: "ConnectionLost"
        case .streamRefused: "StreamRefused"
        case .stopped: "Stopped"
        case .unreachable: "Unreachable"
        case .interrupted: "Interrupted"
        }
    }
}

/// The reason why a lane ended before its work was done.
package enum TransportError: Error, Hashable, Sendable, CustomStringConvertible {
    case unreachable(PushEndpoint, reason: String)
    /// The peer's certificate does not verify, or the peer does not speak HTTP/2 over TLS 1.2 or later.
    case untrusted(PushEndpoint, reason: String)
    case credentialUnusable(String)

    package var description: String {
        switch self {
        case .unreachable(let endpoint, let reason):
            "cannot reach \(endpoint): \(reason); "
                + (Self.isOwnLimit(reason)
                    ? "raise LimitNOFILE= in the unit, or ulimit -n in a shell"
                    : "check the host, the network and the firewall (TCP 443 or 2197)")
        case .untrusted(let endpoint, let reason):
            "cannot trust \(endpoint): \(reason); check the CA certificates, or `trust` in the configuration"
        case .credentialUnusable(let reason):
            reason
        }
    }

    /// Tells whether the process has too many open files. The host is then not the cause.
    private static func isOwnLimit(_ reason: String) -> Bool {
        reason.contains("file descriptor") || reason.contains("Too many open files")
    }
}

extension TransportError {
    /// The fault of the pushes that were not yet written when a lane ended with this error.
    var faultOfUnsent: TransportFault {
        switch self {
        case .unreachable(_, let reason), .untrusted(_, let reason): .unreachable(reason)
        case .credentialUnusable: .stopped
        }
    }

    /// Returns the error of a connection that the peer ended. A refused client certificate has this effect.
    static func afterConnect(_ plan: LanePlan, _ reason: String) -> TransportError {
        if case .certificate = plan.credential {
            return .credentialUnusable(
                "\(plan.endpoint) closed the connection (\(reason)); check the certificate's environment and topic")
        }
        return .unreachable(plan.endpoint, reason: reason)
    }
}

package struct PushEndpoint: Hashable, Sendable, CustomStringConvertible {
    package var host: String
    package var port: Int

    package init(host: String, port: Int = 443) {
        self.host = host
        self.port = port
    }

    package static let production = PushEndpoint(host: "api.push.apple.com")
    package static let sandbox = PushEndpoint(host: "api.sandbox.push.apple.com")

    /// Reads `host`, `host:port` or `[v6]:port`, with an optional `https://` before it.
    package init?(parsing text: String) {
        var rest = text[...]
        if rest.hasPrefix("https://") { rest = rest.dropFirst("https://".count) }
        if rest.hasSuffix("/") { rest = rest.dropLast() }
        let bracket = rest.lastIndex(of: "]")
        let colon = rest.lastIndex(of: ":").flatMap { colon in bracket.map { colon > $0 } ?? true ? colon : nil }
        let host = rest[..<(colon ?? rest.endIndex)]
        guard !host.isEmpty, !host.contains("/"), !host.contains(" ") else { return nil }
        self.host = String(host)
        port = 443
        guard let colon else { return }
        guard let port = Int(rest[rest.index(after: colon)...]), (1...65535).contains(port) else { return nil }
        self.port = port
    }

    package var description: String { "\(host):\(port)" }
}

extension PushEndpoint {
    /// The host without the brackets of an IPv6 address.
    var bareHost: String {
        host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }

    /// The value of `:authority`.
    var authority: String {
        let host = bareHost.contains(":") ? "[\(bareHost)]" : bareHost
        return port == 443 ? host : "\(host):\(port)"
    }
}
