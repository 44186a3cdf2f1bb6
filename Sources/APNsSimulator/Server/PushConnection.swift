import HTTP2
import Platform

/// One client connection to the simulated APNs, with its credentials and its history. Use it only on the event loop's
/// thread.
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
    private let ports: SimulatorPorts
    let environment: SimulatorEnvironment
    let number: Int
    /// `nil` if the client uses provider tokens.
    private(set) var certificateTopic: CertificateTopic?
    var tokens = TokenSession()
    private(set) var hasAccepted = false
    /// Whether the certificate was rejected. The client was sent a GOAWAY, and gets no more responses.
    private var isTurnedAway = false

    /// The decoded device token of the current request. `nil` if the path has none.
    private(set) var token: UnsafeRawBufferPointer?
    private let tokenRoom = UnsafeMutableRawBufferPointer.allocate(
        byteCount: DeviceTokenShape.byteCounts.upperBound, alignment: 16)
    /// Delayed responses in the order of their times.
    private var late = DelayQueue()
    /// Delayed responses that are due before an older response in `late`, by stream.
    private var early: [Int32: Decision] = [:]
    /// The last stream of the last GOAWAY. Higher streams are not processed.
    private var lastStream = Int32.max
    /// The highest stream with a complete request.
    private var newestStream: Int32 = 0
    /// The debug data of a GOAWAY that permits all streams. A final one with the true last stream follows when no
    /// stream is open. Without it, nghttp2 would end the connection, and requests on their way would be lost.
    private var finalGoAway: [UInt8]?
    /// Whether nothing is written any more.
    private var isSilent = false
    private var isConnected = false
    private var isOver = false

    init(
        _ connection: ServerConnection, environment: SimulatorEnvironment, policy: SimulatorPolicy,
        state: SimulatorState, ports: SimulatorPorts
    ) {
        self.connection = connection
        self.environment = environment
        self.policy = policy
        self.state = state
        self.ports = ports
        number = Int(connection.number)
    }

    deinit {
        tokenRoom.deallocate()
    }

    var openStreams: Int { connection.openStreams }

    /// Returns the token for the log: decoded, or as sent if it is invalid.
    func tokenText(_ request: IncomingRequest) -> String? {
        if let token { return Hex.text(token) }
        guard let path = request[.path], path.count > Inspection.devicePath.count else { return nil }
        guard path.hasPrefix(Inspection.devicePath) else { return nil }
        return String(decoding: path[Inspection.devicePath.count...], as: UTF8.self)
    }

    func connected() {
        isConnected = true
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
        guard !isTurnedAway, !isSilent else { return }
        newestStream = max(newestStream, request.stream)
        token = DeviceTokenShape.decode(path: request[.path], into: tokenRoom)
        guard request.stream <= lastStream else { return state.passOver(request, on: self) }
        let decision = state.decide(request, on: self)
        mark(request, decision)
        if decision.verdict.isAccepted { accepted() }
        if let fault = decision.fault { apply(fault, to: request) }
        let isAnswered = decision.verdict.status != 0 && decision.fault?.withholdsAnswer != true
        guard isAnswered, request.stream <= lastStream else { return }
        guard decision.delayMs > 0 else { return answer(request, decision) }
        wait(decision, for: request.stream)
    }

    func closed(_ request: IncomingRequest, isDone: Bool) {
        defer { goAwayFinally() }
        guard !isDone || state.followsRequests, let mark = RequestMark(request) else { return }
        if !isDone, mark.outcome == .accepted || mark.outcome == .refused { state.answerLost(mark.sequence) }
        state.finished(mark.sequence)
        RequestMark(sequence: mark.sequence, outcome: .final).write(to: request)
    }

    func refused(stream: Int32) {
        state.streamRefused()
    }

    func disconnected() {
        isOver = true
        if isConnected { state.connectionClosed() }
    }

    private func accepted() {
        guard !hasAccepted else { return }
        hasAccepted = true
        connection.streamLimit = policy.streamsMax
    }

    private func mark(_ request: IncomingRequest, _ decision: Decision) {
        let outcome: RequestMark.Outcome =
            switch decision.verdict.status {
            case 0: .untouched
            case 200: decision.losesAnswer ? .acceptedAndLost : .accepted
            default: decision.losesAnswer ? .untouched : .refused
            }
        RequestMark(sequence: decision.sequence, outcome: outcome).write(to: request)
    }
}

// MARK: Responses

extension PushConnection: TimerTarget {
    private enum Timer {
        /// Negative tags, because the tags of streams are positive.
        static let delayQueue: Int64 = -1
        static let streamLimit: Int64 = -2
        static let outageEnd: Int64 = -3
    }

    private func wait(_ decision: Decision, for stream: Int32) {
        let wasEmpty = late.isEmpty
        let due = connection.now() + UInt64(decision.delayMs) * 1_000_000
        if late.append(decision, for: stream, due: due) {
            if wasEmpty { schedule(decision.delayMs, Timer.delayQueue) }
        } else {
            early[stream] = decision
            schedule(decision.delayMs, Int64(stream))
        }
    }

    private func schedule(_ milliseconds: Int, _ tag: Int64) {
        connection.schedule(afterMilliseconds: milliseconds, target: self, tag: tag)
    }

    func timerFired(_ tag: Int64) {
        // The outage also ended this connection, so resume the port before the check of `isOver`.
        if tag == Timer.outageEnd { ports[environment]?.resume() }
        guard !isOver else { return }
        switch tag {
        case Timer.delayQueue: answerLate()
        case Timer.streamLimit: connection.streamLimit = policy.streamsMax
        default:
            let stream = Int32(truncatingIfNeeded: tag)
            if let decision = early.removeValue(forKey: stream) { answer(stream, decision) }
        }
    }

    private func answerLate() {
        let now = connection.now()
        while let next = late.take(dueAt: now) { answer(next.stream, next.decision) }
        guard let due = late.nextDue else { return }
        schedule(Int((due - now + 999_999) / 1_000_000), Timer.delayQueue)
    }

    /// Sends a delayed response. The stream may have ended in the meantime.
    private func answer(_ stream: Int32, _ decision: Decision) {
        guard !isSilent, stream <= lastStream, let request = connection.request(on: stream) else { return }
        answer(request, decision)
    }

    private func answer(_ request: IncomingRequest, _ decision: Decision) {
        withUnsafeTemporaryAllocation(byteCount: MessageID.characters, alignment: 8) { room in
            decision.madeID?.write(to: room)
            let id =
                decision.madeID == nil ? request[.id] ?? UnsafeRawBufferPointer(room) : UnsafeRawBufferPointer(room)
            let body = decision.verdict.body
            var fields = [ResponseField("apns-id", id, isIndexed: false)]
            if !body.isEmpty {
                let type: StaticString = decision.verdict.page == nil ? "application/json" : "text/html"
                fields.append(ResponseField("content-type", type))
            }
            guard var retryAfter = decision.verdict.retryAfter else {
                return respond(to: request, decision, fields, body)
            }
            retryAfter.withUTF8 { value in
                fields.append(ResponseField("retry-after", UnsafeRawBufferPointer(value)))
                respond(to: request, decision, fields, body)
            }
        }
    }

    private func respond(to request: IncomingRequest, _ decision: Decision, _ fields: [ResponseField], _ body: [UInt8])
    {
        connection.respond(
            to: request, status: decision.verdict.status, fields: fields, body: body,
            isReset: decision.fault == .cutAnswer)
    }
}

// MARK: Faults

extension PushConnection {
    private func apply(_ fault: FaultAction, to request: IncomingRequest) {
        switch fault {
        case .answer, .page, .delay, .silence, .cutAnswer: break
        case .silentConnection:
            isSilent = true
            connection.fallSilent()
        case .reset(let code): connection.reset(stream: request.stream, code: code)
        case .close: connection.abort()
        case .outage(let milliseconds):
            ports.beginOutage(of: environment)
            schedule(milliseconds, Timer.outageEnd)
        case .streamLimit(let streams, let milliseconds):
            connection.streamLimit = streams
            if let milliseconds { schedule(milliseconds, Timer.streamLimit) }
        case .goAway(let last, let reason, let text, let isTwice, let closes):
            let debugData = reason.map { Verdict(status: 503, reason: $0).body } ?? text.map { Array($0.utf8) } ?? []
            if isTwice { connection.goAway(lastStream: .max, debugData: debugData) }
            goAway(lastStream(of: last, at: request.stream), debugData)
            if closes { connection.endAfterOutput() }
        }
    }

    /// Sends a GOAWAY. By RFC 9113 section 6.8, streams above `last` were not processed, so their requests no longer
    /// count as accepted.
    private func goAway(_ last: Int32, _ debugData: [UInt8]) {
        lastStream = min(lastStream, last)
        finalGoAway = lastStream == .max ? debugData : nil
        connection.goAway(lastStream: lastStream, debugData: debugData)
        for request in connection.openRequests where request.stream > lastStream && !request.hasResponse {
            guard let mark = RequestMark(request), mark.outcome == .accepted || mark.outcome == .acceptedAndLost else {
                continue
            }
            state.withdraw(mark.sequence, isAnswerLost: mark.outcome == .acceptedAndLost)
            RequestMark(sequence: mark.sequence, outcome: .untouched).write(to: request)
        }
    }

    private func goAwayFinally() {
        guard !isOver, connection.openStreams == 0, let finalGoAway else { return }
        goAway(newestStream, finalGoAway)
    }

    func lastStream(of last: FaultAction.LastStream, at stream: Int32) -> Int32 {
        switch last {
        case .none: 0
        // A client's streams have odd numbers.
        case .before: max(0, stream - 2)
        case .middle: middleStream(at: stream)
        case .this: stream
        case .all: .max
        }
    }

    private func middleStream(at stream: Int32) -> Int32 {
        let waiting = connection.openRequests.filter { $0.stream <= stream && !$0.hasResponse }.map(\.stream).sorted()
        return waiting.isEmpty ? stream : waiting[(waiting.count - 1) / 2]
    }
}
