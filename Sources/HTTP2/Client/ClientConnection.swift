import CNGHTTP2
import Glibc

/// The client's side of one connection: finds the server, agrees on TLS and HTTP/2, carries requests. The loop's thread
/// only; the loop keeps it until it has ended.
package final class ClientConnection {
    enum Stage {
        /// Goes to `connecting` or `ended`.
        case resolving
        /// Goes to `agreeing` or `ended`.
        case connecting(AddressRace)
        /// TLS is being agreed, or the peer's first SETTINGS are on their way. Goes to `open` or `ended`.
        case agreeing
        /// Goes to `ended`.
        case open
        case ended
    }

    /// Room for the answers of all streams at once, so that the peer never waits for us.
    static let windowBytes: Int32 = 1 << 20
    /// More of a GOAWAY's debug data is dropped.
    static let debugBytesMax = 1024

    let settings: ClientSettings
    let loop: EventLoop
    var stage = Stage.resolving
    private(set) var core: ConnectionCore?
    /// Broken off at the end: the two refer to each other.
    private(set) var owner: (any ClientConnectionOwner)?
    /// Uncounted: whoever submits a request keeps it to its end.
    var requests: [Unmanaged<ClientRequest>] = []
    private var reason: ClientConnectionEnd?
    private var lookUp: NameResolver.Ticket?

    /// As the peer allows at once by its last SETTINGS; 0 before them.
    package internal(set) var streamLimit = 0
    /// Nothing can be started here any more: the peer said GOAWAY, or the stream ids are used up.
    package internal(set) var isClosedToRequests = false
    /// When the last bytes came, by ``EventLoop/roundStart``.
    package internal(set) var lastHeard: UInt64 = 0
    /// Streams started so far.
    package private(set) var streamsStarted = 0

    package init(_ settings: ClientSettings, loop: EventLoop, owner: any ClientConnectionOwner) {
        self.settings = settings
        self.loop = loop
        self.owner = owner
    }

    /// Requests that have a stream.
    package var openRequests: Int { requests.count }

    /// The TLS session was taken up again instead of being agreed anew.
    package var isResumed: Bool { core?.isTLSResumed ?? false }
}

// MARK: The way to the server

extension ClientConnection: TimerTarget {
    /// To be called once.
    package func connect() {
        loop.schedule(afterMilliseconds: settings.connectDeadlineMs, target: self, tag: 0)
        let (host, port) = (settings.peer.host, settings.peer.port)
        if let address = SocketAddress.written(host: host, port: port) { return race([address]) }
        // Given back at the end: a look-up that hangs keeps neither this connection nor its loop.
        let (me, loop) = (LoopConfined(self), loop)
        lookUp = settings.resolver.resolve(host: host, port: port) { found in
            loop.submit { me.value.resolved(found) }
        }
    }

    private func resolved(_ result: NameResolver.Found) {
        guard case .resolving = stage else { return }
        lookUp = nil
        switch result {
        case .success(let addresses): race(addresses)
        case .failure(let fault): end(.unreachable("\(settings.peer.host): \(fault.reason)"))
        }
    }

    private func race(_ addresses: [SocketAddress]) {
        let race = AddressRace(
            AddressOrder.of(addresses, turn: settings.turn), unacknowledgedMaxMs: settings.unacknowledgedMaxMs,
            loop: loop
        ) { [self] socket, faults in
            guard let socket else { return end(.unreachable(faults)) }
            agree(over: socket)
        }
        stage = .connecting(race)
        race.start()
    }

    private func agree(over socket: Int32) {
        stage = .agreeing
        let core = ConnectionCore(client: settings.tls, to: settings.peer, socket: socket, loop: loop)
        core.handshakeLimitMs = settings.connectDeadlineMs
        core.outputEdit = { AuthorizationIndexing.reveal(in: $0) }
        self.core = core
        core.start(self)
    }

    package func timerFired(_ tag: Int64) {
        switch stage {
        case .resolving, .connecting: end(.unreachable("no connection within \(settings.connectDeadlineMs) ms"))
        case .agreeing: abort(.unreachable("HTTP/2 was not agreed within \(settings.connectDeadlineMs) ms"))
        case .open, .ended: break
        }
    }

    func end(_ reason: ClientConnectionEnd) {
        if case .ended = stage { return }
        if case .connecting(let race) = stage { race.stop() }
        lookUp?.cancel()
        lookUp = nil
        stage = .ended
        core = nil
        let ending = owner
        owner = nil
        ending?.closed(self, self.reason ?? reason)
    }
}

// MARK: What the owner may do

extension ClientConnection {
    /// Opens a stream for the request, which must have its fields, own values and body. False: there are no more stream
    /// ids, or the connection is not open.
    package func submit(_ request: ClientRequest) -> Bool {
        guard case .open = stage, !isClosedToRequests, let session = core?.session else { return false }
        request.begin()
        request.setOwnIndexed(isFirst: streamsStarted == 0)
        let user = Unmanaged.passUnretained(request).toOpaque()
        var provider = nghttp2_data_provider()
        provider.source.ptr = user
        provider.read_callback = { _, _, buffer, length, flags, source, _ in
            ClientConnection.fill(buffer, length, flags, source)
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

    /// Gives a request up by RST_STREAM; it ends as usual.
    package func cancel(_ request: ClientRequest) {
        guard request.stream > 0, let session = core?.session else { return }
        nghttp2_submit_rst_stream(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), request.stream, NGHTTP2_CANCEL.rawValue)
        core?.submitted()
    }

    /// Asks for a sign of life: the answer shows in ``lastHeard``.
    package func ping() {
        guard let session = core?.session else { return }
        nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
        core?.submitted()
    }

    /// Says GOAWAY and ends; requests still open end as lost.
    package func goodbye() {
        guard case .open = stage, let session = core?.session else { return abort(.local) }
        reason = reason ?? .local
        nghttp2_session_terminate_session(session, NGHTTP2_NO_ERROR.rawValue)
        core?.submitted()
    }

    /// Ends at once, or at the next safe point.
    package func abort(_ reason: ClientConnectionEnd) {
        self.reason = self.reason ?? reason
        if let core { core.abort() } else { end(reason) }
    }

    private static func fill(
        _ buffer: UnsafeMutablePointer<UInt8>?, _ length: Int, _ flags: UnsafeMutablePointer<UInt32>?,
        _ source: UnsafeMutablePointer<nghttp2_data_source>?
    ) -> Int {
        guard let buffer, let flags, let pointer = source?.pointee.ptr else {
            return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
        }
        let request = Unmanaged<ClientRequest>.fromOpaque(pointer).takeUnretainedValue()
        guard let (count, isLast) = request.fill(UnsafeMutableRawBufferPointer(start: buffer, count: length)) else {
            return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
        }
        if isLast { flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        return count
    }
}

// MARK: What it is told and tells

/// Where a client connects to, and its bounds.
package struct ClientSettings: Sendable {
    package var peer: TLSPeer
    package var tls: TLSContext
    package var resolver = NameResolver.system
    /// Counts connections of the whole client: each begins with another of the peer's addresses.
    package var turn = 0
    /// From the first look at the name to the peer's first SETTINGS.
    package var connectDeadlineMs = 10_000
    /// How long the kernel waits for an acknowledgement before it gives the connection up.
    package var unacknowledgedMaxMs = 20_000
    /// Odd. Tests begin near the end of the numbers.
    package var firstStream: Int32 = 1

    package init(peer: TLSPeer, tls: TLSContext) {
        self.peer = peer
        self.tls = tls
    }
}

/// What the user of a client connection is told, on the loop's thread. Inside nghttp2 it may submit frames, and end the
/// connection only by ``ClientConnection/abort(_:)``.
package protocol ClientConnectionOwner: AnyObject {
    /// TLS stands and the peer's first SETTINGS are in: requests may be submitted.
    func opened(_ connection: ClientConnection)

    /// A request is over and may be used again. Each one that was submitted gets here once. Inside nghttp2.
    func ended(_ request: ClientRequest, _ end: ClientRequest.End, on connection: ClientConnection)

    /// The peer takes no new requests; those beyond its last stream end next, as not processed. May come more than
    /// once. Inside nghttp2.
    func goingAway(_ connection: ClientConnection, _ notice: GoAwayNotice)

    /// All that had come was read; what is submitted now is written at once, together. The stream limit may be another.
    func inputRead(_ connection: ClientConnection)

    /// The connection is over, or never was: no other call follows.
    func closed(_ connection: ClientConnection, _ reason: ClientConnectionEnd)
}

/// A GOAWAY frame (RFC 9113 section 6.8).
package struct GoAwayNotice: Hashable, Sendable {
    package var lastStream: Int32
    package var code: UInt32
    /// What the peer says about it, its first bytes.
    package var debugData: [UInt8]

    package init(lastStream: Int32, code: UInt32, debugData: [UInt8]) {
        self.lastStream = lastStream
        self.code = code
        self.debugData = debugData
    }
}

package enum ClientConnectionEnd: Hashable, Sendable {
    /// The name has no address, nobody answers there, or not in time.
    case unreachable(String)
    /// TLS was not agreed.
    case handshake(HandshakeFault)
    /// It stood, and ended: in words.
    case lost(String)
    /// This side ended it.
    case local
}

// What comes from the peer.
extension ClientConnection: ConnectionRole {
    func established() {
        guard let session = core?.session else { return }
        let entries = [
            nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0),
            // RFC 9218: no tree of a thousand streams to keep in order.
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
            // They follow at once, before another stream's.
            if request.wantsFields { core?.fieldsWantedOn = stream }
        }
    }

    func data(stream: Int32, bytes: UnsafeRawBufferPointer) {
        withRequest(on: stream) { $0.received(body: bytes) }
    }

    func streamEnded(_ stream: Int32) {
        withRequest(on: stream) { request in
            request.responseEnded()
            // The peer answered without waiting for the body: the rest of it is of no use (RFC 9113 section 8.1).
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

    func connectionEnded(_ end: ConnectionEnd) {
        isClosedToRequests = true
        let unanswered = requests.map { $0.takeUnretainedValue() }
        for request in unanswered { finish(request, request.endWhenLost) }
        self.end(Self.reason(end))
    }

    private func settingsCame() {
        guard let session = core?.session else { return }
        let limit = nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
        streamLimit = Int(limit)
        guard case .agreeing = stage else { return }
        stage = .open
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

    /// Without counting references: several times for each push.
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
        case .peer(let words): .lost(words ?? "the peer closed the connection")
        case .finished: .lost("the connection was ended by GOAWAY or a fault of the protocol")
        }
    }
}
