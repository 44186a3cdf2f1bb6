import CNGHTTP2

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
        withRequest(on: stream) { $0.received(status: value) }
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
