import CNGHTTP2

/// The server's side of one connection: gathers requests, writes answers, keeps the stream limit. The loop's thread only.
package final class ServerConnection {
    /// A stand-in for SETTINGS_MAX_CONCURRENT_STREAMS, changed into the real one on its way out. nghttp2 must not know
    /// the limit: once acknowledged, it would end the connection over a stream too many, where APNs refuses just that
    /// stream (`apns-protocol.md` section 8). RFC 9113 leaves the identifier free.
    private static let streamLimitStandIn: UInt16 = 0x0fa9

    private let core: ConnectionCore
    private let loop: EventLoop
    private let settings: ServerSettings
    private var handler: (any RequestHandler)?
    /// Every request object made so far; nghttp2 refers to those in use without counting.
    private var requests: [IncomingRequest] = []
    private var free: [IncomingRequest] = []
    private var isEstablished = false
    /// Called once when the connection is over.
    var onEnd: (() -> Void)?

    /// Unique over the life of the server.
    package let number: UInt64
    /// Streams now open, the refused ones left out.
    package private(set) var openStreams = 0
    /// Streams the peer may have open at once. A new value is sent as SETTINGS and holds at once; streams over it are
    /// refused.
    package var streamLimit: Int {
        didSet {
            guard isEstablished, streamLimit != oldValue else { return }
            submit([entry(Self.streamLimitStandIn, streamLimit)])
        }
    }

    /// Takes the socket over.
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

    /// Takes the peer's bytes and never says a word, not even in TLS.
    func startSilent() {
        core.startSilent()
    }

    /// The request that came on this stream, while the stream is open.
    package func request(on stream: Int32) -> IncomingRequest? {
        guard let session = core.session else { return nil }
        guard let user = nghttp2_session_get_stream_user_data(session, stream) else { return nil }
        return Unmanaged<IncomingRequest>.fromOpaque(user).takeUnretainedValue()
    }
}

// MARK: What the handler may do

extension ServerConnection {
    /// Those with open streams that are not refused, whole or not, in no order.
    package var openRequests: [IncomingRequest] { requests.filter(\.isOpen) }

    /// Answers with a status of three digits and ends the stream: with the headers when there is no body.
    ///
    /// `isCut`: after the headers RST_STREAM INTERNAL_ERROR comes in place of the body and the end.
    package func answer(
        _ request: IncomingRequest, status: Int, fields: [ResponseField], body: [UInt8] = [], isCut: Bool = false
    ) {
        guard let session = core.session else { return }
        request.answerBody = body
        request.answerOffset = 0
        request.isAnswered = true
        request.isAnswerCut = isCut
        withUnsafeTemporaryAllocation(byteCount: 3, alignment: 1) { digits in
            let status = min(max(status, 100), 999)
            for place in 0..<3 { digits[2 - place] = UInt8(ascii: "0") + UInt8(status / Self.powers[place] % 10) }
            withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: fields.count + 1) { values in
                values[0] = ResponseField(":status", UnsafeRawBufferPointer(digits)).native
                for (index, field) in fields.enumerated() { values[index + 1] = field.native }
                submit(values, for: request, hasBody: isCut || !body.isEmpty, to: session)
            }
        }
        core.submitted()
    }

    private static let powers = [1, 10, 100]

    private func submit(
        _ values: UnsafeMutableBufferPointer<nghttp2_nv>, for request: IncomingRequest, hasBody: Bool,
        to session: OpaquePointer
    ) {
        guard hasBody else {
            nghttp2_submit_response(session, request.stream, values.baseAddress, values.count, nil)
            return
        }
        var provider = nghttp2_data_provider()
        provider.source.ptr = Unmanaged.passUnretained(request).toOpaque()
        provider.read_callback = { _, _, buffer, length, flags, source, _ in
            ServerConnection.fill(buffer, length, flags, source)
        }
        nghttp2_submit_response(session, request.stream, values.baseAddress, values.count, &provider)
    }

    /// As ``EventLoop/schedule(afterMilliseconds:target:tag:)``; the timer fires even when the connection is over.
    package func schedule(afterMilliseconds milliseconds: Int, target: any TimerTarget, tag: Int64) {
        loop.schedule(afterMilliseconds: milliseconds, target: target, tag: tag)
    }

    /// RST_STREAM with an error code of RFC 9113 section 7.
    package func reset(stream: Int32, code: UInt32) {
        guard let session = core.session else { return }
        nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, code)
        core.submitted()
    }

    /// GOAWAY; the connection ends when the streams up to `lastStream` are done. A lower `lastStream` may follow a higher
    /// one. At most 1,024 bytes of `debugData` are sent.
    package func goAway(lastStream: Int32, code: UInt32 = 0, debugData: [UInt8] = []) {
        guard let session = core.session else { return }
        let data = debugData.prefix(1024)
        data.withUnsafeBufferPointer { bytes in
            _ = nghttp2_submit_goaway(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), lastStream, code, bytes.baseAddress, bytes.count)
        }
        core.submitted()
    }

    /// Ends the connection without a word and without writing what is still queued.
    package func abort() {
        core.abort()
    }

    /// Ends the connection when what was submitted so far is written, with streams unanswered.
    package func endAfterOutput() {
        core.endAfterOutput()
    }

    /// Keeps the connection and says nothing more, PING acknowledgements included; what the peer sends is dropped.
    package func fallSilent() {
        core.fallSilent()
    }

    private static func fill(
        _ buffer: UnsafeMutablePointer<UInt8>?, _ length: Int, _ flags: UnsafeMutablePointer<UInt32>?,
        _ source: UnsafeMutablePointer<nghttp2_data_source>?
    ) -> Int {
        guard let buffer, let flags, let pointer = source?.pointee.ptr else {
            return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
        }
        let request = Unmanaged<IncomingRequest>.fromOpaque(pointer).takeUnretainedValue()
        if request.isAnswerCut { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
        let count = min(length, request.answerBody.count - request.answerOffset)
        request.answerBody.withUnsafeBufferPointer { body in
            guard let base = body.baseAddress else { return }
            buffer.update(from: base + request.answerOffset, count: count)
        }
        request.answerOffset += count
        if request.answerOffset == request.answerBody.count { flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        return count
    }
}

// MARK: Frames

extension ServerConnection: ConnectionRole {
    func established() {
        handler?.connected()
        guard let session = core.session else { return }
        isEstablished = true
        // Goes out before anything the handler submitted: nghttp2 writes SETTINGS first.
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
        handler?.closed(request, isDone: request.isAnswered && code == NGHTTP2_NO_ERROR.rawValue)
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

    /// A chunk begins with the head of a frame: 3 bytes length, type, flags, 4 bytes stream; entries of 2 + 4 bytes.
    private func revealStreamLimit(in chunk: UnsafeMutableRawBufferPointer) {
        let isSettings = chunk.count > 9 && chunk[3] == UInt8(NGHTTP2_SETTINGS.rawValue) && chunk[4] == 0
        guard isSettings else { return }
        for place in stride(from: 9, to: chunk.count - 5, by: 6) {
            guard UInt16(chunk[place]) << 8 | UInt16(chunk[place + 1]) == Self.streamLimitStandIn else { continue }
            chunk[place] = 0
            chunk[place + 1] = UInt8(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue)
        }
    }
}
