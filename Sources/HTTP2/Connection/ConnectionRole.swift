import CNGHTTP2

/// The behaviour of one side of HTTP/2. The core moves bytes and frames, and the role interprets them.
///
/// Calls come on the loop's thread. Calls marked "inside nghttp2" are made during the reading or writing of frames. The
/// role may submit frames there, and end the connection only by ``ConnectionCore/abort()``.
protocol ConnectionRole: AnyObject {
    /// TLS is established and the session is new. Submit SETTINGS now.
    func established()

    /// A block of request or response headers begins. Inside nghttp2.
    func headersBegan(stream: Int32)

    /// A header has arrived. Inside nghttp2. The bytes are valid during the call only.
    func header(stream: Int32, name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)

    /// A part of a body has arrived. Inside nghttp2. The bytes are valid during the call only.
    func data(stream: Int32, bytes: UnsafeRawBufferPointer)

    /// The peer sends nothing more on this stream. Inside nghttp2.
    func streamEnded(_ stream: Int32)

    /// Both sides have ended the stream, or it was reset. Inside nghttp2.
    func streamClosed(_ stream: Int32, code: UInt32)

    /// A SETTINGS, PING or GOAWAY frame of the peer has arrived. Inside nghttp2. The frame is valid during the call
    /// only.
    func controlFrame(_ frame: UnsafePointer<nghttp2_frame>)

    /// A submitted request cannot be sent, for example because the peer is going away. Inside nghttp2.
    func requestNotSent(stream: Int32)

    /// All arrived data was read. Frames submitted now are sent immediately.
    func inputRead()

    /// Nothing more is written, see ``ConnectionCore/Phase/reading``. The connection does not end by itself.
    func outputEnded()

    /// The connection has ended. No other call follows, and the core must not be used any more.
    func connectionEnded(_ end: ConnectionEnd)
}

extension ConnectionRole {
    func controlFrame(_ frame: UnsafePointer<nghttp2_frame>) {}
    func requestNotSent(stream: Int32) {}
    func inputRead() {}
    func outputEnded() {}
}

/// The reason why a connection ended.
package enum ConnectionEnd: Hashable, Sendable {
    /// This side ended it.
    case local
    /// TLS was not established.
    case handshake(HandshakeFault)
    /// The peer or the network ended the connection. The text gives the reason, if there is one.
    case peer(String?)
    /// All output was written after a GOAWAY, a protocol error of the peer, or ``ConnectionCore/endAfterOutput()``.
    case finished
}

/// The bridge from nghttp2's C callbacks to a ``ConnectionCore``. The user data is the core, unretained, because the
/// core owns the session.
enum SessionCallbacks {
    private static let goOn: Int32 = 0

    /// Returns `nil` if memory has run out.
    static func newServerSession(for core: ConnectionCore) -> OpaquePointer? {
        var callbacks: OpaquePointer?
        guard nghttp2_session_callbacks_new(&callbacks) == 0, let callbacks else { return nil }
        defer { nghttp2_session_callbacks_del(callbacks) }
        fill(callbacks)
        var option: OpaquePointer?
        guard nghttp2_option_new(&option) == 0, let option else { return nil }
        defer { nghttp2_option_del(option) }
        // libcurl 7.88 resets every stream once it has its response. nghttp2's protection against rapid resets would
        // end such a connection after a thousand requests.
        nghttp2_option_set_stream_reset_rate_limit(option, .max, .max)
        var session: OpaquePointer?
        let user = Unmanaged.passUnretained(core).toOpaque()
        return nghttp2_session_server_new2(&session, callbacks, user, option) == 0 ? session : nil
    }

    static func fill(_ callbacks: OpaquePointer) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, user in
            SessionCallbacks.call(user) { core in
                if let frame { core.headersBegan(stream: frame.pointee.hd.stream_id) }
            }
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameLength, value, valueLength, _, user in
            SessionCallbacks.call(user) { core in
                guard let frame else { return }
                core.header(
                    stream: frame.pointee.hd.stream_id,
                    name: UnsafeRawBufferPointer(start: name, count: nameLength),
                    value: UnsafeRawBufferPointer(start: value, count: valueLength))
            }
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, _, stream, bytes, count, user in
            SessionCallbacks.call(user) { core in
                core.data(stream: stream, bytes: UnsafeRawBufferPointer(start: bytes, count: count))
            }
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
            guard let head = frame?.pointee.hd else { return SessionCallbacks.goOn }
            let carriesEnd = head.type == UInt8(NGHTTP2_DATA.rawValue) || head.type == UInt8(NGHTTP2_HEADERS.rawValue)
            guard carriesEnd, head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0 else {
                return SessionCallbacks.goOn
            }
            return SessionCallbacks.call(user) { $0.streamEnded(head.stream_id) }
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, code, user in
            SessionCallbacks.call(user) { $0.streamClosed(stream, code: code) }
        }
    }

    /// Calls the core. The result makes nghttp2 return immediately if the connection is aborted.
    @inline(__always) static func call(_ user: UnsafeMutableRawPointer?, _ body: (ConnectionCore) -> Void) -> Int32 {
        guard let user else { return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue }
        // The caller of nghttp2 retains the core.
        return Unmanaged<ConnectionCore>.fromOpaque(user)._withUnsafeGuaranteedRef { core in
            body(core)
            return core.isAborting ? NGHTTP2_ERR_CALLBACK_FAILURE.rawValue : goOn
        }
    }
}

/// The client's own nghttp2 callbacks, in addition to those that it shares with the server.
enum ClientCallbacks {
    /// Returns `nil` if memory has run out.
    static func newSession(for core: ConnectionCore, _ memory: SessionMemory) -> OpaquePointer? {
        var callbacks: OpaquePointer?
        guard nghttp2_session_callbacks_new(&callbacks) == 0, let callbacks else { return nil }
        defer { nghttp2_session_callbacks_del(callbacks) }
        SessionCallbacks.fill(callbacks)
        fill(callbacks)
        var session: OpaquePointer?
        let user = Unmanaged.passUnretained(core).toOpaque()
        var functions = memory.functions
        return nghttp2_session_client_new3(&session, callbacks, user, nil, &functions) == 0 ? session : nil
    }

    private static func fill(_ callbacks: OpaquePointer) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, nil)
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameLength, value, valueLength, _, user in
            guard let frame, let name else { return 0 }
            // `:status` is the only pseudo-header of a response. The other headers of most responses are not needed.
            let isStatus = name.pointee == UInt8(ascii: ":")
            return SessionCallbacks.call(user) { core in
                guard isStatus || core.fieldsWantedOn == frame.pointee.hd.stream_id else { return }
                core.header(
                    stream: frame.pointee.hd.stream_id,
                    name: UnsafeRawBufferPointer(start: name, count: nameLength),
                    value: UnsafeRawBufferPointer(start: value, count: valueLength))
            }
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
            guard let frame else { return 0 }
            let head = frame.pointee.hd
            switch UInt32(head.type) {
            case NGHTTP2_DATA.rawValue, NGHTTP2_HEADERS.rawValue:
                guard head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0 else { return 0 }
                return SessionCallbacks.call(user) { $0.streamEnded(head.stream_id) }
            case NGHTTP2_SETTINGS.rawValue, NGHTTP2_PING.rawValue, NGHTTP2_GOAWAY.rawValue:
                return SessionCallbacks.call(user) { $0.controlFrame(frame) }
            default: return 0
            }
        }
        nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) { _, frame, _, user in
            guard let head = frame?.pointee.hd, head.type == UInt8(NGHTTP2_HEADERS.rawValue) else { return 0 }
            return SessionCallbacks.call(user) { $0.requestNotSent(stream: head.stream_id) }
        }
    }
}

/// Combines small frames into writes of whole TLS records. A record and a system call cost more than a frame.
struct OutputBuffer: ~Copyable {
    /// The maximum content of one TLS record.
    private static let recordBytes = 16_384
    /// The maximum output of nghttp2 per call: a frame of 16,384 bytes with its head.
    private static let frameBytesMax = 16_384 + 64

    /// The buffer, allocated with the first frame, so that a connection without output needs no memory.
    private var storage = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var start = 0
    private var end = 0

    deinit {
        storage.deallocate()
    }

    var isEmpty: Bool { start == end }

    /// The bytes of the next write: a whole record, or the rest. A repeated write never gets shorter, as OpenSSL
    /// requires.
    var pending: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: storage[start..<min(end, start + Self.recordBytes)])
    }

    mutating func consume(_ count: Int) {
        start += count
        if start == end {
            start = 0
            end = 0
        }
    }

    /// Takes frames from the session, and passes each to `edit`, until a record is full or the session has no more.
    /// Returns false if the session has failed.
    mutating func gather(from session: OpaquePointer, edit: (UnsafeMutableRawBufferPointer) -> Void) -> Bool {
        if storage.baseAddress == nil {
            storage = .allocate(byteCount: Self.recordBytes + Self.frameBytesMax, alignment: 16)
        }
        while end - start < Self.recordBytes {
            var chunk: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &chunk)
            if count < 0 || count > Self.frameBytesMax { return false }
            guard count > 0, let chunk else { return true }
            if count > storage.count - end { moveToFront() }
            let frame = UnsafeMutableRawBufferPointer(rebasing: storage[end..<end + count])
            frame.copyMemory(from: UnsafeRawBufferPointer(start: chunk, count: count))
            edit(frame)
            end += count
        }
        return true
    }

    private mutating func moveToFront() {
        storage.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[start..<end]))
        end -= start
        start = 0
    }
}
