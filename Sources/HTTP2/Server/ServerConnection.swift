import CNGHTTP2

/// The server's side of one connection. It assembles requests, writes responses, and enforces the stream limit. Only
/// the loop's thread may use it.
package final class ServerConnection {
    /// A stand-in for SETTINGS_MAX_CONCURRENT_STREAMS, replaced by the real identifier on output. A stream over the
    /// limit is a stream error (RFC 9113 section 5.1.2). nghttp2 treats it as a connection error once the limit is
    /// acknowledged, so nghttp2 must not know the limit. The stand-in's identifier is unassigned (section 11.3).
    private static let streamLimitStandIn: UInt16 = 0x0fa9

    let core: ConnectionCore
    private let loop: EventLoop
    private let settings: ServerSettings
    private var handler: (any RequestHandler)?
    /// All request objects created so far. nghttp2 refers to the ones in use unretained.
    private var requests: [IncomingRequest] = []
    private var free: [IncomingRequest] = []
    private var isEstablished = false
    /// The notification of the connection's end, called once.
    var onEnd: (() -> Void)?

    /// The number of the connection, which no other connection of the server has.
    package let number: UInt64
    /// The number of open streams, without the refused ones.
    package private(set) var openStreams = 0
    /// The maximum number of streams that the peer may have open. A new value is sent as SETTINGS and applies
    /// immediately. Streams over it are refused.
    package var streamLimit: Int {
        didSet {
            guard isEstablished, streamLimit != oldValue else { return }
            submit([entry(Self.streamLimitStandIn, streamLimit)])
        }
    }

    /// Takes ownership of the socket.
    init(socket: Int32, number: UInt64, tls: TLSContext, settings: ServerSettings, loop: EventLoop) {
        self.number = number
        self.settings = settings
        self.loop = loop
        streamLimit = settings.streamLimit
        core = ConnectionCore(server: tls, socket: socket, loop: loop)
        core.outputEdit = { [unowned self] in revealStreamLimit(in: $0) }
    }

    func start(_ handler: any RequestHandler) {
        self.handler = handler
        core.start(self)
    }

    package var peerCertificate: PeerCertificate? { core.peerCertificate }

    /// Reads the peer's bytes and never writes any, not even in the TLS handshake.
    func startSilent() {
        core.startSilent()
    }

    /// Returns the request of a stream, while the stream is open.
    package func request(on stream: Int32) -> IncomingRequest? {
        guard let session = core.session else { return nil }
        guard let user = nghttp2_session_get_stream_user_data(session, stream) else { return nil }
        return Unmanaged<IncomingRequest>.fromOpaque(user).takeUnretainedValue()
    }
}

// MARK: Actions of the handler

extension ServerConnection {
    /// The requests with open streams that were not refused, complete or not, in no particular order.
    package var openRequests: [IncomingRequest] { requests.filter(\.isOpen) }

    /// Returns the time of the loop's clock, which the timers use, in nanoseconds.
    package func now() -> UInt64 { loop.now() }

    /// Schedules a timer as ``EventLoop/schedule(afterMilliseconds:target:tag:)`` does. The timer fires even after the
    /// connection's end.
    package func schedule(afterMilliseconds milliseconds: Int, target: any TimerTarget, tag: Int64) {
        loop.schedule(afterMilliseconds: milliseconds, target: target, tag: tag)
    }

    /// Sends RST_STREAM with an error code of RFC 9113 section 7.
    package func reset(stream: Int32, code: UInt32) {
        guard let session = core.session else { return }
        nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, code)
        core.submitted()
    }

    /// Sends GOAWAY. The connection ends when the streams up to `lastStream` are done. A lower `lastStream` may follow
    /// a higher one. At most 1,024 bytes of `debugData` are sent.
    package func goAway(lastStream: Int32, code: UInt32 = 0, debugData: [UInt8] = []) {
        guard let session = core.session else { return }
        let data = debugData.prefix(1024)
        data.withUnsafeBufferPointer { bytes in
            _ = nghttp2_submit_goaway(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), lastStream, code, bytes.baseAddress, bytes.count)
        }
        core.submitted()
    }

    /// Closes the connection with no GOAWAY, and drops queued output.
    package func abort() {
        core.abort()
    }

    /// Ends the connection when the submitted output is written, even if streams have no response.
    package func endAfterOutput() {
        core.endAfterOutput()
    }

    /// Keeps the connection and writes nothing more, not even PING acknowledgements. Received data is dropped.
    package func fallSilent() {
        core.fallSilent()
    }
}

// MARK: Frames

extension ServerConnection: ConnectionRole {
    func established() {
        handler?.connected()
        guard let session = core.session else { return }
        isEstablished = true
        // nghttp2 writes SETTINGS before the frames that the handler has already submitted.
        submit([
            entry(Self.streamLimitStandIn, streamLimit),
            entry(UInt16(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue), settings.streamWindowBytes),
            entry(UInt16(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue), settings.headerListBytesMax),
        ])
        let window = Int32(clamping: settings.connectionWindowBytes)
        nghttp2_session_set_local_window_size(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, window)
    }

    func headersBegan(stream: Int32) {
        guard let session = core.session, request(on: stream) == nil else { return }
        guard openStreams < streamLimit else {
            nghttp2_submit_rst_stream(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, NGHTTP2_REFUSED_STREAM.rawValue)
            handler?.refused(stream: stream)
            return
        }
        let request = free.popLast() ?? makeRequest()
        request.reset(for: stream)
        nghttp2_session_set_stream_user_data(session, stream, Unmanaged.passUnretained(request).toOpaque())
        openStreams += 1
    }

    func header(stream: Int32, name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        request(on: stream)?.add(header: settings.vocabulary.index(of: name), name: name, value: value)
    }

    func data(stream: Int32, bytes: UnsafeRawBufferPointer) {
        request(on: stream)?.add(body: bytes)
    }

    func streamEnded(_ stream: Int32) {
        guard let request = request(on: stream) else { return }
        handler?.received(request)
    }

    func streamClosed(_ stream: Int32, code: UInt32) {
        guard let request = request(on: stream) else { return }
        openStreams -= 1
        request.isOpen = false
        handler?.closed(request, isDone: request.hasResponse && code == NGHTTP2_NO_ERROR.rawValue)
        free.append(request)
    }

    func connectionEnded(_ end: ConnectionEnd) {
        let ending = handler
        handler = nil
        for request in requests where request.isOpen { ending?.closed(request, isDone: false) }
        ending?.disconnected()
        onEnd?()
        onEnd = nil
    }

    private func makeRequest() -> IncomingRequest {
        let request = IncomingRequest(headers: settings.vocabulary.count, bodyBytesMax: settings.bodyBytesMax)
        requests.append(request)
        return request
    }

    private func submit(_ entries: [nghttp2_settings_entry]) {
        guard let session = core.session else { return }
        nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count)
        core.submitted()
    }

    private func entry(_ identifier: UInt16, _ value: Int) -> nghttp2_settings_entry {
        nghttp2_settings_entry(settings_id: Int32(identifier), value: UInt32(clamping: value))
    }

    /// Replaces the stand-in in a chunk that holds a SETTINGS frame. Its header has 9 bytes: 3 for the length, type,
    /// flags, and 4 for the stream. Each entry has 2 + 4 bytes.
    private func revealStreamLimit(in chunk: UnsafeMutableRawBufferPointer) {
        let isSettings = chunk.count > 9 && chunk[3] == UInt8(NGHTTP2_SETTINGS.rawValue) && chunk[4] == 0
        guard isSettings else { return }
        for offset in stride(from: 9, to: chunk.count - 5, by: 6) {
            guard UInt16(chunk[offset]) << 8 | UInt16(chunk[offset + 1]) == Self.streamLimitStandIn else { continue }
            chunk[offset] = 0
            chunk[offset + 1] = UInt8(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue)
        }
    }
}

/// Handles the requests of one connection. Every call comes on the connection's loop.
package protocol RequestHandler: AnyObject {
    /// TLS is established and no request was read yet. The handler may check the peer's certificate and set another
    /// stream limit here.
    func connected()

    /// A complete request has arrived. Respond to it now or later, while its stream is open.
    func received(_ request: IncomingRequest)

    /// The stream of a request has ended, alone or with its connection. `isDone` is true if the response was completely
    /// written.
    func closed(_ request: IncomingRequest, isDone: Bool)

    /// A stream over the limit was refused.
    func refused(stream: Int32)

    /// The connection has ended. Its open requests will not get a response.
    func disconnected()
}

/// The settings that a server announces and applies.
package struct ServerSettings: Sendable {
    package var vocabulary: HeaderVocabulary
    /// The stream limit of a new connection.
    package var streamLimit: Int
    package var streamWindowBytes = 65_535
    package var connectionWindowBytes = 65_535
    /// An announced limit only (RFC 9113 section 6.5.2: advisory). A longer list is accepted, and counted in
    /// ``IncomingRequest/headerListSize``.
    package var headerListBytesMax: Int
    /// The maximum number of kept body bytes. Further bytes are only counted.
    package var bodyBytesMax: Int

    package init(vocabulary: HeaderVocabulary, streamLimit: Int, headerListBytesMax: Int, bodyBytesMax: Int) {
        self.vocabulary = vocabulary
        self.streamLimit = streamLimit
        self.headerListBytesMax = headerListBytesMax
        self.bodyBytesMax = bodyBytesMax
    }
}
