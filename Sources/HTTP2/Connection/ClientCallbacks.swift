import CNGHTTP2

/// The client's share of nghttp2's callbacks, beside those it has in common with the server.
enum ClientCallbacks {
    /// Nil when memory has run out.
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
            // Of all pseudo-headers an answer has only `:status`; the others are of no use.
            guard let frame, name?.pointee == UInt8(ascii: ":") else { return 0 }
            return SessionCallbacks.call(user) { core in
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
