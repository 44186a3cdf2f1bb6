import HTTP2

/// One connection of a client to the simulated APNs: its credentials, and what it got so far. The loop's thread only.
final class PushConnection: RequestHandler {
    /// The topics of a client certificate.
    struct CertificateTopic {
        let topics: TopicTable
        /// The bundle id, for requests without `apns-topic`.
        let standard: TopicTable.Topic
    }

    private unowned let connection: ServerConnection
    private let policy: SimulatorPolicy
    private let state: SimulatorState
    let environment: SimulatorEnvironment
    let number: Int
    /// Nil: provider tokens.
    private(set) var certificateTopic: CertificateTopic?
    var tokens = TokenSession()
    private(set) var hasAccepted = false
    /// The certificate was refused: a GOAWAY is on its way, and nothing is answered any more.
    private var isTurnedAway = false

    /// The device token of the request at hand, decoded; nil when the path has none.
    private(set) var token: UnsafeRawBufferPointer?
    private let tokenRoom = UnsafeMutableRawBufferPointer.allocate(
        byteCount: DeviceTokenShape.byteCounts.upperBound, alignment: 16)
    private var due: [Int32: Decision] = [:]

    init(
        _ connection: ServerConnection, environment: SimulatorEnvironment, policy: SimulatorPolicy,
        state: SimulatorState
    ) {
        self.connection = connection
        self.environment = environment
        self.policy = policy
        self.state = state
        number = Int(connection.number)
    }

    deinit {
        tokenRoom.deallocate()
    }

    var openStreams: Int { connection.openStreams }

    /// For the log: as decoded, else as it came.
    func tokenText(_ request: IncomingRequest) -> String? {
        if let token { return Hex.text(of: token) }
        guard let path = request[.path], path.count > Inspection.devicePath.count else { return nil }
        guard path.hasPrefix(Inspection.devicePath) else { return nil }
        return String(decoding: path[Inspection.devicePath.count...], as: UTF8.self)
    }

    func connected() {
        state.connectionOpened()
        connection.streamLimit = policy.acceptsAll ? policy.streamsMax : policy.streamsBeforeAcceptance
        guard policy.asksForCertificate, !policy.acceptsAll, let certificate = connection.peerCertificate else {
            return
        }
        guard certificate.isTrusted, certificate.extensions.contains(environment.certificateExtension),
            let bundleID = certificate.subjectUserID
        else { return turnAway() }
        var bytes = bundleID
        let topics = TopicTable([bundleID])
        guard let standard = bytes.withUTF8({ topics.topic(UnsafeRawBufferPointer($0)) }) else { return turnAway() }
        certificateTopic = CertificateTopic(topics: topics, standard: standard)
        connection.streamLimit = policy.streamsMax
    }

    private func turnAway() {
        isTurnedAway = true
        connection.goAway(lastStream: 0, debugData: Verdict(.badCertificateEnvironment).body)
    }

    func received(_ request: IncomingRequest) {
        guard !isTurnedAway else { return }
        token = DeviceTokenShape.decode(path: request[.path], into: tokenRoom)
        let decision = state.decide(request, on: self)
        switch decision.fault {
        case .silence: return
        case .reset(let code): return connection.reset(stream: request.stream, code: code)
        case .close: return connection.abort()
        case .goAway(let last, let reason): goAway(last, reason, at: request.stream)
        case .answer, .delay, nil: break
        }
        if decision.verdict.isAccepted { accepted() }
        guard decision.delayMs > 0 else { return answer(request, decision) }
        due[request.stream] = decision
        connection.wait(milliseconds: decision.delayMs, for: request)
    }

    func answerDue(_ request: IncomingRequest) {
        guard let decision = due.removeValue(forKey: request.stream) else { return }
        answer(request, decision)
    }

    func refused(stream: Int32) {
        state.streamRefused()
    }

    func disconnected() {
        state.connectionClosed()
    }

    private func accepted() {
        guard !hasAccepted else { return }
        hasAccepted = true
        connection.streamLimit = policy.streamsMax
    }

    private func goAway(_ last: FaultAction.LastStream, _ reason: String?, at stream: Int32) {
        let lastStream: Int32 =
            switch last {
            case .none: 0
            // A client's streams are odd.
            case .before: max(0, stream - 2)
            case .this: stream
            case .all: .max
            }
        let debugData = reason.map { Verdict(status: 503, reason: $0).body } ?? []
        connection.goAway(lastStream: lastStream, debugData: debugData)
    }

    private func answer(_ request: IncomingRequest, _ decision: Decision) {
        withUnsafeTemporaryAllocation(byteCount: MessageID.characters, alignment: 8) { room in
            decision.madeID?.write(to: room)
            let id =
                decision.madeID == nil ? request[.id] ?? UnsafeRawBufferPointer(room) : UnsafeRawBufferPointer(room)
            let body = decision.verdict.body
            let idField = ResponseField("apns-id", id, isIndexed: false)
            let fields = body.isEmpty ? [idField] : [idField, ResponseField("content-type", "application/json")]
            connection.answer(request, status: decision.verdict.status, fields: fields, body: body)
        }
    }
}
