import HTTP2
import Logging

// Which connection is used, and when it is replaced.
extension NativeLaneWorker {
    private static let retiringMax = 4
    /// ENHANCE_YOUR_CALM of RFC 9113 section 7.
    private static let enhanceYourCalm: UInt32 = 11

    /// All that stand.
    var living: [NativeConnection] { retiring + (current.map { [$0] } ?? []) }

    /// When the next connection may be begun; nil where none is wanted.
    func connectDue(_ now: UInt64) -> UInt64? {
        let isWanted = queue.count > 0 || pending > 0 && hasMoreToCome
        guard current == nil, candidate == nil, isWanted, drainUntil == nil else { return nil }
        // Opening and closing fast counts as an attack (`ProviderProtocol` section 8).
        let spaced = connectedAt.map { $0 + plan.backOff.delay(afterFailures: 1).nanoseconds } ?? 0
        return max(holdUntil, spaced)
    }

    func openConnection(_ now: UInt64) {
        guard let due = connectDue(now), now >= due else { return }
        connectedAt = now
        do throws(TransportError) {
            let settings = try connections.settings(for: plan)
            let client = ClientConnection(settings, loop: loop, owner: self)
            candidate = NativeConnection(client, limits: plan.limits, now: now)
            plan.logger.debug("connecting", metadata: ["endpoint": "\(plan.endpoint)"])
            client.connect()
        } catch {
            failure = error
        }
    }

    /// Nothing more starts on this connection; the next one is opened before it ends.
    func retire(_ connection: NativeConnection) {
        guard connection === current else { return }
        current = nil
        retiring.append(connection)
        if retiring.count > Self.retiringMax { retiring[0].client.abort(.local) }
        plan.logger.debug("connection retired", metadata: ["endpoint": "\(plan.endpoint)"])
    }

    func closeRetired() {
        for connection in retiring where connection.client.openRequests == 0 { connection.client.goodbye() }
    }

    func checkLiveness(_ now: UInt64) {
        for connection in living {
            connection.liveness.isBusy(connection.client.openRequests > 0, at: now)
            switch connection.liveness.action(at: now) {
            case .wait: break
            case .ping:
                connection.client.ping()
                connection.liveness.pinged(at: now)
            case .giveUp: connection.client.abort(.lost("no answer to PING within \(plan.limits.pingDeadline)"))
            }
        }
    }

    func nextDue(_ connection: NativeConnection, _ now: UInt64) -> UInt64 {
        var due = UInt64.max
        if case .wait(let until) = connection.liveness.action(at: now) { due = until }
        if let since = connection.stalledSince { due = min(due, since + plan.limits.requestDeadline.nanoseconds) }
        if let oldest = connection.order.oldest() {
            due = min(due, oldest.startedAt + plan.limits.requestDeadline.nanoseconds)
        }
        return due
    }

    /// Many requests may report the end of one connection: only the first counts.
    func follow(_ error: TransportError, _ judge: (inout ConnectionHealth) -> ConnectionHealth.Action) {
        guard failure == nil else { return }
        switch judge(&health) {
        case .goOn: break
        case .retire: current.map(retire)
        case .holdOff(let failures):
            current.map(retire)
            holdUntil = loop.roundStart + plan.backOff.delay(afterFailures: failures).nanoseconds
            plan.logger.debug("connect failed", metadata: ["failures": "\(failures)", "reason": "\(error)"])
        case .giveUp: failure = error
        }
    }
}

extension NativeLaneWorker: ClientConnectionOwner {
    func opened(_ client: ClientConnection) {
        guard let connection = candidate, connection.client === client else { return }
        candidate = nil
        current.map(retire)
        current = connection
        connects += 1
        health.opened()
    }

    func ended(_ request: ClientRequest, _ end: ClientRequest.End, on client: ClientConnection) {
        guard let connection = connection(of: client) else { return }
        settle(request.number, end, on: connection)
    }

    func goingAway(_ client: ClientConnection, _ notice: GoAwayNotice) {
        guard let connection = connection(of: client) else { return }
        let words = GoAwayReason(notice)
        connection.goAway = words.description
        goAway = words.description
        plan.logger.notice(
            "connection going away",
            metadata: [
                "endpoint": "\(plan.endpoint)", "reason": "\(words)", "code": "\(notice.code)",
                "last_stream": "\(notice.lastStream)",
            ])
        if words.isAboutCertificate {
            failure = failure ?? .afterConnect(plan, words.description)
        } else if connection === current {
            let isCalledToOrder = notice.code == Self.enhanceYourCalm
            follow(.afterConnect(plan, words.description)) { isCalledToOrder ? $0.failed() : $0.lost() }
        }
        retire(connection)
    }

    func inputRead(_ client: ClientConnection) {
        connection(of: client)?.liveness.heard(at: client.lastHeard)
        pump()
    }

    func closed(_ client: ClientConnection, _ end: ClientConnectionEnd) {
        if let connection = candidate, connection.client === client {
            candidate = nil
            connectFailed(end)
        } else if let connection = current, connection.client === client {
            current = nil
            let words = connection.goAway ?? end.words
            plan.logger.debug("connection lost", metadata: ["endpoint": "\(plan.endpoint)", "reason": "\(words)"])
            follow(.afterConnect(plan, words)) { $0.lost() }
        } else {
            retiring.removeAll { $0.client === client }
        }
        pump()
    }

    private func connection(of client: ClientConnection) -> NativeConnection? {
        if let current, current.client === client { return current }
        if let candidate, candidate.client === client { return candidate }
        return retiring.first { $0.client === client }
    }

    private func connectFailed(_ end: ClientConnectionEnd) {
        if end == .local { return }
        let (error, isFinal) = end.error(plan)
        if isFinal { failure = failure ?? error } else { follow(error) { $0.failed() } }
    }
}

extension ClientConnectionEnd {
    fileprivate var words: String {
        switch self {
        case .unreachable(let words), .lost(let words), .handshake(.untrusted(let words)),
            .handshake(.broken(let words)):
            words
        case .handshake(.notHTTP2): "it does not speak HTTP/2; does a proxy inspect TLS?"
        case .handshake(.closed(let words)): words ?? "the connection was closed before TLS was agreed"
        case .handshake(.timedOut): "TLS was not agreed in time"
        case .local: "ended by this side"
        }
    }

    /// Of a connection that never stood; final where another attempt would end no better.
    fileprivate func error(_ plan: LanePlan) -> (TransportError, isFinal: Bool) {
        switch self {
        case .handshake(.untrusted), .handshake(.notHTTP2): (.untrusted(plan.endpoint, reason: words), true)
        case .handshake(.broken): (.untrusted(plan.endpoint, reason: words), false)
        case .lost: (.afterConnect(plan, words), false)
        case .unreachable, .handshake, .local: (.unreachable(plan.endpoint, reason: words), false)
        }
    }
}
