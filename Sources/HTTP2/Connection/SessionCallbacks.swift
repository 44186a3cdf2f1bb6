import CNGHTTP2

/// The bridge from nghttp2's C callbacks to a ``ConnectionCore``: the user data is the core, unretained, for the core
/// owns the session.
enum SessionCallbacks {
    private static let goOn: Int32 = 0

    /// Nil when memory has run out.
    static func newServerSession(for core: ConnectionCore) -> OpaquePointer? {
        var callbacks: OpaquePointer?
        guard nghttp2_session_callbacks_new(&callbacks) == 0, let callbacks else { return nil }
        defer { nghttp2_session_callbacks_del(callbacks) }
        fill(callbacks)
        var option: OpaquePointer?
        guard nghttp2_option_new(&option) == 0, let option else { return nil }
        defer { nghttp2_option_del(option) }
        // libcurl 7.88 resets every stream once it has its answer; nghttp2's guard against rapid resets would end such a
        // connection after a thousand requests.
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

    /// An aborted connection makes nghttp2 return at once.
    @inline(__always) static func call(_ user: UnsafeMutableRawPointer?, _ body: (ConnectionCore) -> Void) -> Int32 {
        guard let user else { return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue }
        // Whoever called nghttp2 holds it.
        return Unmanaged<ConnectionCore>.fromOpaque(user)._withUnsafeGuaranteedRef { core in
            body(core)
            return core.isAborting ? NGHTTP2_ERR_CALLBACK_FAILURE.rawValue : goOn
        }
    }
}
