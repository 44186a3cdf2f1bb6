import HTTP2
import Logging
import Platform

/// One connection of a native lane. It puts pushes on streams, and reports the peer's actions to the lane. Only the
/// lane's thread may use it.
final class NativeConnection: LaneConnection {
    typealias Slot = NativeSlot
    typealias Headers = RequestFields
    typealias Context = NativeClientSettings

    static let traits = LaneStateMachine.Traits(seesSettings: true, sendsPing: true)

    /// ENHANCE_YOUR_CALM of RFC 9113 section 7.
    private static let enhanceYourCalm: UInt32 = 11

    let id: Int
    private let driver: LaneDriver<NativeConnection>
    private let settings: ClientSettings
    private var client: ClientConnection?
    private var isOpen = false
    /// The reason in the peer's GOAWAY, as text.
    private var goAway: String?

    init(id: Int, driver: LaneDriver<NativeConnection>) throws(TransportError) {
        self.id = id
        self.driver = driver
        settings = try driver.context.settings(for: driver.plan)
    }

    static func slot(number: Int, _ plan: LanePlan) -> NativeSlot { NativeSlot(number: number) }

    /// Returns the fields that all pushes of a batch share. `:path` and `apns-id` go between them (`ProviderProtocol`
    /// section 4).
    static func headers(_ headers: PushHeaders, _ token: ProviderToken?, _ plan: LanePlan) -> RequestFields {
        var fields = [
            RequestFields.Field(":method", Array("POST".utf8)), RequestFields.Field(":scheme", Array("https".utf8)),
            RequestFields.Field(":authority", Array(plan.endpoint.authority.utf8)),
        ]
        for header in headers.sharedHeaders(authorization: token?.authorization) {
            fields.append(RequestFields.Field(header.name, header.value))
        }
        return RequestFields(fields)
    }

    func open() {
        let client = ClientConnection(settings, loop: driver.loop, owner: self)
        self.client = client
        client.connect()
    }

    func start(_ slot: NativeSlot, under headers: RequestFields) -> Bool {
        slot.fill(under: headers)
        return client?.submit(slot.request) ?? false
    }

    func expire(_ slot: NativeSlot) {
        driver.expired(slot, isWritten: slot.isWritten)
        client?.cancel(slot.request)
        driver.missedDeadline(self)
    }

    func ping() { client?.ping() }

    func close() { client?.goodbye() }

    func abort(_ summary: String) { client?.abort(.lost(summary)) }
}

extension NativeConnection: ClientConnectionOwner {
    func opened(_ client: ClientConnection) {
        isOpen = true
        driver.made(connections: 1)
        driver.opened(self, streamLimit: client.streamLimit)
    }

    /// Reports the end of a request. Like ``goingAway(_:_:)``, it may be called inside nghttp2.
    func ended(_ request: ClientRequest, _ end: ClientRequest.End, on client: ClientConnection) {
        guard let slot = driver.slot(request.number) else { return }
        driver.ended(slot, requestEnd(end, slot, client), on: self)
    }

    private func requestEnd(_ end: ClientRequest.End, _ slot: NativeSlot, _ client: ClientConnection) -> RequestEnd {
        switch end {
        case .responded:
            let moment = driver.loop.roundStart
            let latency = Int64((max(moment, slot.startedAt) - slot.startedAt) / 1000)
            return .answered(slot.answer, latencyMicroseconds: max(1, latency))
        case .cutOff: return .cutOff(status: slot.request.status)
        // After GOAWAY, at the end of the connection, or if the request was held back, the push counts no refusal.
        case .notProcessed: return client.isClosedToRequests || slot.request.isHeldBack ? .notProcessed : .refused
        case .reset(let code): return .lost("the stream was reset with code \(code)")
        case .lost: return .lost(goAway ?? "the connection closed before the response")
        }
    }

    func goingAway(_ client: ClientConnection, _ notice: GoAwayNotice) {
        let reason = GoAwayReason(notice)
        goAway = reason.description
        driver.plan.logger.notice(
            "connection going away",
            metadata: [
                "endpoint": "\(driver.plan.endpoint)", "reason": "\(reason)", "code": "\(notice.code)",
                "last_stream": "\(notice.lastStream)",
            ])
        driver.goingAway(self, reason, isEnhanceYourCalm: notice.code == Self.enhanceYourCalm)
    }

    func suspended(_ client: ClientConnection) {
        driver.plan.logger.notice(
            "process suspended before it could write; the connection is replaced",
            metadata: ["endpoint": "\(driver.plan.endpoint)", "open_requests": "\(client.openRequests)"])
        driver.exhausted(self)
        driver.pumpAtRoundEnd()
    }

    func inputRead(_ client: ClientConnection) {
        driver.heard(self, streamLimit: client.streamLimit, at: client.lastHeard)
        driver.pump()
    }

    func closed(_ client: ClientConnection, _ end: ClientConnectionEnd) {
        if !isOpen, end != .local {
            let (error, isFinal) = end.error(driver.plan)
            driver.openFailed(self, error, isFinal: isFinal)
        }
        driver.closed(self, goAway ?? end.summary)
        self.client = nil
        driver.pump()
    }
}

/// The buffers for one push at a time, with its stream's request. Only the lane's thread may use them.
final class NativeSlot: RequestSlot {
    private static let path = 0
    private static let id = 1

    let request: ClientRequest

    override init(number: Int) {
        request = ClientRequest(
            number: number, ownFields: [(":path", .nameOnly), ("apns-id", .nameOnly)], wanted: "retry-after")
        super.init(number: number)
        request.mayLeave = { [unowned self] in mayStart }
    }

    override var isWritten: Bool { request.isWritten }
    override var status: Int { request.status }

    fileprivate func fill(under headers: RequestFields) {
        guard let entry else { return }
        let push = entry.batch.pushes[entry.index]
        request.use(headers)
        request.setOwn(Self.path, count: RequestPath.byteCount(tokenBytes: push.token.count)) {
            RequestPath.write(token: push.token, to: $0)
        }
        request.setOwn(Self.id, count: PushID.textCount) { push.id.write(to: $0) }
        request.body = push.payload
    }

    fileprivate var answer: PushResponse {
        request.status == 200
            ? PushResponse(status: 200)
            : PushResponse(
                status: request.status, body: Array(request.responseBody), retryAfter: request.wantedValue)
    }
}

extension ClientConnectionEnd {
    fileprivate var summary: String {
        switch self {
        case .unreachable(let summary), .lost(let summary), .handshake(.untrusted(let summary)),
            .handshake(.broken(let summary)):
            summary
        case .handshake(.notHTTP2): "it does not support HTTP/2; check whether a proxy inspects TLS"
        case .handshake(.closed(let summary)): summary ?? "the connection was closed during the TLS handshake"
        case .handshake(.timedOut): "the TLS handshake timed out"
        case .local: "closed by Fanfare"
        }
    }

    /// Returns the error of a connection that could not be opened. The error is final if another attempt would also
    /// fail.
    fileprivate func error(_ plan: LanePlan) -> (TransportError, isFinal: Bool) {
        switch self {
        case .handshake(.untrusted), .handshake(.notHTTP2): (.untrusted(plan.endpoint, reason: summary), true)
        case .handshake(.broken): (.untrusted(plan.endpoint, reason: summary), false)
        case .lost: (.afterConnect(plan, summary), false)
        case .unreachable, .handshake, .local: (.unreachable(plan.endpoint, reason: summary), false)
        }
    }
}
