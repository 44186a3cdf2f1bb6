import CNGHTTP2
import Glibc

/// The client's side of one connection. It finds the server, negotiates TLS and HTTP/2, and carries requests. Only the
/// loop's thread may use it. The loop retains it until its end.
package final class ClientConnection {
    enum Phase {
        /// Becomes `connecting` or `ended`.
        case resolving
        /// Becomes `agreeing` or `ended`.
        case connecting(AddressRace)
        /// TLS is being negotiated, or the peer's first SETTINGS have not arrived. Becomes `open` or `ended`.
        case agreeing
        /// Becomes `reading` or `ended`.
        case open
        /// Nothing is written any more, see ``ConnectionCore/Phase/reading``. Becomes `ended`.
        case reading
        case ended
    }

    /// The size of the connection's receive window. It holds the responses of all streams, so the peer never waits for
    /// it.
    static let windowBytes: Int32 = 1 << 20
    private static let frameHeadBytes = 9
    /// The maximum number of kept bytes of a GOAWAY's debug data.
    static let debugBytesMax = 1024

    let settings: ClientSettings
    let loop: EventLoop
    var phase = Phase.resolving
    private(set) var core: ConnectionCore?
    /// The owner. The reference is released at the end, because owner and connection refer to each other.
    private(set) var owner: (any ClientConnectionOwner)?
    /// The open requests, unretained. The caller that submits a request keeps it until its end.
    var requests: [Unmanaged<ClientRequest>] = []
    private var reason: ClientConnectionEnd?
    private var lookUp: NameResolver.Ticket?

    /// The number of streams that the peer's last SETTINGS allow. 0 before them.
    package internal(set) var streamLimit = 0
    /// Whether no more requests can start: the peer sent GOAWAY, or the stream ids are used up.
    package internal(set) var isClosedToRequests = false
    /// The time of the last received bytes, by ``EventLoop/roundStart``.
    package internal(set) var lastHeard: UInt64 = 0
    /// The number of streams started so far.
    package private(set) var streamsStarted = 0

    package init(_ settings: ClientSettings, loop: EventLoop, owner: any ClientConnectionOwner) {
        self.settings = settings
        self.loop = loop
        self.owner = owner
    }

    /// The number of requests that have a stream.
    package var openRequests: Int { requests.count }

    /// Whether a TLS session was resumed, so that no full handshake was needed.
    package var isResumed: Bool { core?.isTLSResumed ?? false }
}

// MARK: Connecting

extension ClientConnection: TimerTarget {
    /// Starts to connect. Call it once.
    package func connect() {
        loop.schedule(afterMilliseconds: settings.connectDeadlineMs, target: self, tag: 0)
        let (host, port) = (settings.peer.host, settings.peer.port)
        if let address = SocketAddress.written(host: host, port: port) { return race([address]) }
        // The end of the connection cancels the ticket. A look-up that hangs then retains neither the connection nor
        // its loop.
        let (me, loop) = (LoopConfined(self), loop)
        lookUp = settings.resolver.resolve(host: host, port: port) { found in
            loop.submit { me.value.resolved(found) }
        }
    }

    private func resolved(_ result: NameResolver.Found) {
        guard case .resolving = phase else { return }
        lookUp = nil
        switch result {
        case .success(let addresses): race(addresses)
        case .failure(let fault): end(.unreachable("\(settings.peer.host): \(fault.reason)"))
        }
    }

    private func race(_ addresses: [SocketAddress]) {
        let race = AddressRace(
            AddressSequence.of(addresses, rotation: settings.rotation),
            unacknowledgedMaxMs: settings.unacknowledgedMaxMs,
            loop: loop
        ) { [self] socket, faults in
            guard let socket else { return end(.unreachable(faults)) }
            agree(over: socket)
        }
        phase = .connecting(race)
        race.start()
    }

    private func agree(over socket: Int32) {
        phase = .agreeing
        let core = ConnectionCore(client: settings.tls, to: settings.peer, socket: socket, loop: loop)
        core.handshakeLimitMs = settings.connectDeadlineMs
        core.standstill = StandstillWatch(maxNanoseconds: settings.standstillMaxNs)
        core.outputEdit = { AuthorizationIndexing.reveal(in: $0) }
        self.core = core
        core.start(self)
    }

    package func timerFired(_ tag: Int64) {
        switch phase {
        case .resolving, .connecting: end(.unreachable("no connection within \(settings.connectDeadlineMs) ms"))
        case .agreeing:
            abort(.unreachable("the HTTP/2 handshake did not finish within \(settings.connectDeadlineMs) ms"))
        case .open, .reading, .ended: break
        }
    }

    func end(_ reason: ClientConnectionEnd) {
        if case .ended = phase { return }
        if case .connecting(let race) = phase { race.stop() }
        lookUp?.cancel()
        lookUp = nil
        phase = .ended
        core = nil
        let ending = owner
        owner = nil
        ending?.closed(self, self.reason ?? reason)
    }
}

// MARK: Actions of the owner

extension ClientConnection {
    /// Opens a stream for the request, which must have its fields, own values and body. Returns false if the connection
    /// can start no request.
    package func submit(_ request: ClientRequest) -> Bool {
        guard case .open = phase, !isClosedToRequests, let session = core?.session else { return false }
        request.begin()
        request.setOwnIndexed(isFirst: streamsStarted == 0)
        let user = Unmanaged.passUnretained(request).toOpaque()
        var provider = nghttp2_data_provider()
        provider.source.ptr = user
        provider.read_callback = { _, _, buffer, length, flags, source, user in
            ClientConnection.fill(buffer, length, flags, source, user)
        }
        let stream = nghttp2_submit_request(session, nil, request.values, request.valueCount, &provider, user)
        guard stream > 0 else {
            isClosedToRequests = true
            return false
        }
        request.stream = stream
        request.index = requests.count
        requests.append(Unmanaged.passUnretained(request))
        streamsStarted += 1
        core?.submitted()
        return true
    }

    /// Cancels a request by RST_STREAM. Its end is reported as usual.
    package func cancel(_ request: ClientRequest) {
        guard request.stream > 0, let session = core?.session else { return }
        if case .reading = phase { return forget(request) }
        nghttp2_submit_rst_stream(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), request.stream, NGHTTP2_CANCEL.rawValue)
        core?.submitted()
    }

    /// Sends a PING. Its acknowledgement updates ``lastHeard``.
    package func ping() {
        guard let session = core?.session else { return }
        nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
        core?.submitted()
    }

    /// Sends GOAWAY and closes the connection. Requests without a response end as `lost`, or as `notProcessed` if they
    /// are not written.
    package func goodbye() {
        guard case .open = phase, let session = core?.session else { return abort(.local) }
        reason = reason ?? .local
        nghttp2_session_terminate_session(session, NGHTTP2_NO_ERROR.rawValue)
        core?.submitted()
    }

    /// Ends the connection immediately, or at the next safe point.
    package func abort(_ reason: ClientConnectionEnd) {
        self.reason = self.reason ?? reason
        if let core { core.abort() } else { end(reason) }
    }

    private static func fill(
        _ buffer: UnsafeMutablePointer<UInt8>?, _ length: Int, _ flags: UnsafeMutablePointer<UInt32>?,
        _ source: UnsafeMutablePointer<nghttp2_data_source>?, _ user: UnsafeMutableRawPointer?
    ) -> Int {
        guard let buffer, let flags, let pointer = source?.pointee.ptr, let user else {
            return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
        }
        let request = Unmanaged<ClientRequest>.fromOpaque(pointer).takeUnretainedValue()
        guard let (count, isLast) = request.fill(UnsafeMutableRawBufferPointer(start: buffer, count: length)) else {
            return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
        }
        if isLast {
            flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
            let core = Unmanaged<ConnectionCore>.fromOpaque(user).takeUnretainedValue()
            request.endsAt = core.gatheredBytes + UInt64(Self.frameHeadBytes + count)
        }
        return count
    }
}

// MARK: Settings and events

/// The server that a client connects to, and the limits of the connection.
package struct ClientSettings: Sendable {
    package var peer: TLSPeer
    package var tls: TLSContext
    package var resolver = NameResolver.system
    /// The number of the connection within its client. It selects the address to try first.
    package var rotation = 0
    /// The limit from the start of the name look-up to the peer's first SETTINGS.
    package var connectDeadlineMs = 10_000
    /// The time for which the kernel waits for an acknowledgement before it ends the connection.
    package var unacknowledgedMaxMs = 20_000
    /// The nanoseconds between the permission to send and the writing after which the connection ends unwritten.
    package var standstillMaxNs: UInt64 = 2_500_000_000
    /// The first stream id, an odd number. Tests start near the maximum.
    package var firstStream: Int32 = 1

    package init(peer: TLSPeer, tls: TLSContext) {
        self.peer = peer
        self.tls = tls
    }
}

// MARK: Events from the peer
extension ClientConnection: ConnectionRole {
    func established() {
        guard let session = core?.session else { return }
        let entries = [
            nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0),
            // This disables the priorities of RFC 7540 (RFC 9218). nghttp2 would maintain a tree of all streams for
            // them.
            nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES.rawValue), value: 1),
        ]
        nghttp2_session_set_next_stream_id(session, settings.firstStream)
        nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count)
        nghttp2_session_set_local_window_size(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, Self.windowBytes)
    }

    func headersBegan(stream: Int32) {}

    func header(stream: Int32, name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        withRequest(on: stream) { request in
            guard name.first == UInt8(ascii: ":") else { return request.received(name: name, value: value) }
            request.received(status: value)
            // The other fields follow immediately, before those of another stream.
            if request.wantsFields { core?.fieldsWantedOn = stream }
        }
    }

    func data(stream: Int32, bytes: UnsafeRawBufferPointer) {
        withRequest(on: stream) { $0.received(body: bytes) }
    }

    func streamEnded(_ stream: Int32) {
        withRequest(on: stream) { request in
            request.responseEnded()
            // The peer responded before the end of the body, so the rest of the body is not needed (RFC 9113 section
            // 8.1).
            if !request.isWritten { cancel(request) }
        }
    }

    func streamClosed(_ stream: Int32, code: UInt32) {
        withRequest(on: stream) { finish($0, $0.end(closedWith: code)) }
    }

    func requestNotSent(stream: Int32) {
        let request = requests.lazy.map { $0.takeUnretainedValue() }.first { $0.stream == stream }
        if let request { finish(request, .notProcessed) }
    }

    func controlFrame(_ frame: UnsafePointer<nghttp2_frame>) {
        switch UInt32(frame.pointee.hd.type) {
        case NGHTTP2_SETTINGS.rawValue: settingsCame()
        case NGHTTP2_GOAWAY.rawValue: goAwayCame(frame.pointee.goaway)
        default: break
        }
    }

    func inputRead() {
        lastHeard = loop.roundStart
        owner?.inputRead(self)
    }

    func outputEnded() {
        guard case .open = phase else { return abort(.lost("the process was suspended before it could write")) }
        isClosedToRequests = true
        phase = .reading
        let written = core?.writtenBytes ?? 0
        let open = requests.map { $0.takeUnretainedValue() }
        for request in open where request.end(whenLostAfter: written) == .notProcessed { forget(request) }
        owner?.suspended(self)
    }

    func connectionEnded(_ end: ConnectionEnd) {
        isClosedToRequests = true
        let unanswered = requests.map { $0.takeUnretainedValue() }
        let written = core?.writtenBytes ?? 0
        for request in unanswered { finish(request, request.end(whenLostAfter: written)) }
        self.end(Self.reason(end))
    }

    /// Ends a request whose stream cannot be reset, because nothing is written any more.
    private func forget(_ request: ClientRequest) {
        guard let core, let session = core.session else { return }
        nghttp2_session_set_stream_user_data(session, request.stream, nil)
        finish(request, request.end(whenLostAfter: core.writtenBytes))
    }

    private func settingsCame() {
        guard let session = core?.session else { return }
        let limit = nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
        streamLimit = Int(limit)
        guard case .agreeing = phase else { return }
        phase = .open
        owner?.opened(self)
    }

    private func goAwayCame(_ frame: nghttp2_goaway) {
        isClosedToRequests = true
        let data = UnsafeBufferPointer(start: frame.opaque_data, count: frame.opaque_data_len)
        owner?.goingAway(
            self,
            GoAwayNotice(
                lastStream: frame.last_stream_id, code: frame.error_code,
                debugData: Array(data.prefix(Self.debugBytesMax))))
    }

    private func finish(_ request: ClientRequest, _ end: ClientRequest.End) {
        let last = requests.removeLast()
        if request.index < requests.count {
            requests[request.index] = last
            last._withUnsafeGuaranteedRef { $0.index = request.index }
        }
        request.stream = 0
        owner?.ended(request, end, on: self)
    }

    /// Calls `body` without reference counting, because this happens several times per push.
    private func withRequest(on stream: Int32, _ body: (ClientRequest) -> Void) {
        guard let session = core?.session else { return }
        guard let user = nghttp2_session_get_stream_user_data(session, stream) else { return }
        Unmanaged<ClientRequest>.fromOpaque(user)._withUnsafeGuaranteedRef { request in
            if request.stream == stream { body(request) }
        }
    }

    private static func reason(_ end: ConnectionEnd) -> ClientConnectionEnd {
        switch end {
        case .local: .local
        case .handshake(let fault): .handshake(fault)
        case .peer(let summary): .lost(summary ?? "the peer closed the connection")
        case .finished: .lost("the connection was closed by GOAWAY or a protocol error")
        }
    }
}
