/// One HTTP/2 connection to APNs and what stands around it: a queue, a thread, a deadline per request.
///
/// A lane is used by three parties at once: a child task in ``run()``, one sender, one receiver.
/// Batches cross the thread boundary, single pushes do not.
package protocol Lane: Sendable {
    /// Connects and works until ``finish()`` was called and every push has its response, or until cancelled: then
    /// no new request starts, those on the wire get up to `drainLimit` to be answered, the rest are `notSent`, and
    /// it returns. Throws when the host cannot be reached or trusted, or a certificate is refused; every push taken
    /// so far still gets its response.
    func run() async throws(TransportError)

    /// Hands over a batch; suspends while the lane holds `outstandingMax` pushes whose responses were not yet taken
    /// by ``completions()``. False: the lane has ended and took nothing of the batch.
    func send(_ batch: PushBatch) async -> Bool

    /// The completions gathered since the last call, in the order they came, at least one; waits for the first. Nil:
    /// the lane has ended and every push handed over has had its response.
    func completions() async -> [PushCompletion]?

    /// No more batches will come. Idempotent.
    func finish()

    /// A snapshot for progress and metrics.
    var status: LaneStatus { get }
}

/// Makes lanes of one kind: `curl` or `native`.
package protocol Transport: Sendable {
    func lane(to endpoint: PushEndpoint, named name: String) -> any Lane
}

package struct LaneStatus: Sendable, Hashable {
    /// Requests written and not yet answered.
    package var inFlight = 0
    /// Handed over and not yet written.
    package var queued = 0
    /// What the peer and our own limit allow at once.
    package var streamLimit = 1
    /// Connections opened so far.
    package var connects = 0
    /// Attempts to connect that failed in a row, up to now.
    package var connectFailures = 0
    /// Why the service ended a connection last, in its own words; `curl` does not learn of it.
    package var goAway: String?
    package init() {}
}

/// Why a push has no answer.
package enum TransportFault: Hashable, Sendable, CustomStringConvertible {
    case deadline
    /// The connection ended before the answer came.
    case connectionLost(String)
    case streamRefused
    /// The lane was stopped before the request was written.
    case stopped
    case unreachable(String)
    /// Its sender ended while the request was on the wire.
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

/// Why a lane ended without having done its work.
package enum TransportError: Error, Hashable, Sendable, CustomStringConvertible {
    case unreachable(PushEndpoint, reason: String)
    /// The peer's certificate does not verify, or it does not speak HTTP/2 over TLS 1.2 or later.
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

    /// Whether the process has too many files open, so that the way to the host has no part in it.
    private static func isOwnLimit(_ reason: String) -> Bool {
        reason.contains("file descriptor") || reason.contains("Too many open files")
    }
}

extension TransportError {
    /// Of the pushes that were never written when a lane ended with this error.
    var faultOfUnsent: TransportFault {
        switch self {
        case .unreachable(_, let reason), .untrusted(_, let reason): .unreachable(reason)
        case .credentialUnusable: .stopped
        }
    }

    /// A connection that was made and ended before any answer: a refused client certificate shows as this.
    static func afterConnect(_ plan: LanePlan, _ words: String) -> TransportError {
        if case .certificate = plan.credential {
            return .credentialUnusable(
                "\(plan.endpoint) ends the connection (\(words)); is the certificate for this environment and topic?")
        }
        return .unreachable(plan.endpoint, reason: words)
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
