import CNGHTTP2

// What comes from the peer.
extension ClientConnection: ConnectionRole {
    func established() {
        guard let session = core?.session else { return }
        let entries = [
            nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0)
        ]
        nghttp2_session_set_next_stream_id(session, settings.firstStream)
        nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count)
        nghttp2_session_set_local_window_size(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, Self.windowBytes)
    }

    func headersBegan(stream: Int32) {}

    func header(stream: Int32, name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        // Of all pseudo-headers an answer has only `:status`.
        guard name.first == UInt8(ascii: ":") else { return }
        request(on: stream)?.received(status: value)
    }

    func data(stream: Int32, bytes: UnsafeRawBufferPointer) {
        request(on: stream)?.received(body: bytes)
    }

    func streamEnded(_ stream: Int32) {
        guard let request = request(on: stream) else { return }
        request.answerEnded()
        // The peer answered without waiting for the body: the rest of it is of no use (RFC 9113 section 8.1).
        if !request.isWritten { cancel(request) }
    }

    func streamClosed(_ stream: Int32, code: UInt32) {
        guard let request = request(on: stream) else { return }
        finish(request, request.end(closedWith: code))
    }

    func requestNotSent(stream: Int32) {
        guard let request = requests.first(where: { $0.stream == stream }) else { return }
        finish(request, .notProcessed)
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
        let unanswered = requests
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
        if last !== request {
            requests[request.place] = last
            last.place = request.place
        }
        request.stream = 0
        owner?.ended(request, end, on: self)
    }

    private func request(on stream: Int32) -> ClientRequest? {
        guard let session = core?.session else { return nil }
        guard let user = nghttp2_session_get_stream_user_data(session, stream) else { return nil }
        let request = Unmanaged<ClientRequest>.fromOpaque(user).takeUnretainedValue()
        return request.stream == stream ? request : nil
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
