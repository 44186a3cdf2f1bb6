import CNGHTTP2
import COpenSSL
import Foundation
import Testing

/// A small blocking HTTP/2 client: sends what it is told, right or wrong, and keeps what comes back.
final class TestClient {
    struct Response: Equatable {
        var status = 0
        var headers: [String: String] = [:]
        var body: [UInt8] = []
        var isEnded = false
        /// The frame that ended it was HEADERS.
        var endedWithHeaders = false

        var text: String { String(decoding: body, as: UTF8.self) }
        var reason: String? { text.firstMatch(of: /"reason":"([^"]*)"/).map { String($0.1) } }
    }

    struct GoAway: Equatable {
        var lastStream: Int32
        var debugData: String
    }

    enum Failure: Error {
        case noHandshake
        case ended
    }

    private(set) var answers: [Int32: Response] = [:]
    private(set) var resets: [Int32: UInt32] = [:]
    private(set) var goAways: [GoAway] = []
    /// Each SETTINGS_MAX_CONCURRENT_STREAMS that came.
    private(set) var streamLimits: [UInt32] = []
    private(set) var pingAcknowledgements = 0
    private(set) var isEnded = false

    private let stream: TLSClientStream
    private let session: OpaquePointer
    private var bodies: [Int32: RequestBody] = [:]

    init(port: Int, trusting authorityPath: String, certificate: (path: String, keyPath: String)? = nil) throws {
        stream = try TLSClientStream(port: port, trusting: authorityPath, certificate: certificate)
        var callbacks: OpaquePointer?
        try #require(nghttp2_session_callbacks_new(&callbacks) == 0)
        defer { nghttp2_session_callbacks_del(callbacks) }
        Self.fill(callbacks)
        var made: OpaquePointer?
        let box = ClientBox()
        self.box = box
        let user = Unmanaged.passUnretained(box).toOpaque()
        try #require(nghttp2_session_client_new(&made, callbacks, user) == 0)
        session = try #require(made)
        box.client = self
        nghttp2_submit_settings(session, 0, nil, 0)
    }

    private let box: ClientBox

    deinit {
        nghttp2_session_del(session)
    }

    /// Queues a request; ``write()`` or a wait sends it.
    @discardableResult
    func submit(_ request: TestRequest) -> Int32 {
        let names = request.fields.map { Array($0.0.utf8) }
        let values = request.fields.map { Array($0.1.utf8) }
        let stream = HeaderArray(names, values).withValues { fields -> Int32 in
            guard let body = request.body else {
                return nghttp2_submit_request(session, nil, fields.baseAddress, fields.count, nil, nil)
            }
            let source = RequestBody(body)
            var provider = nghttp2_data_provider()
            provider.source.ptr = Unmanaged.passUnretained(source).toOpaque()
            provider.read_callback = { _, _, room, length, flags, source, _ in
                RequestBody.fill(room, length, flags, source)
            }
            let stream = nghttp2_submit_request(session, nil, fields.baseAddress, fields.count, &provider, nil)
            bodies[stream] = source
            return stream
        }
        answers[stream] = Response()
        return stream
    }

    func write() throws {
        var chunk: UnsafePointer<UInt8>?
        while true {
            let count = nghttp2_session_mem_send(session, &chunk)
            guard count > 0 else { return }
            try stream.write(UnsafeRawBufferPointer(start: chunk, count: count))
        }
    }

    /// Sends a request and waits for its answer, or its reset.
    func answer(to request: TestRequest) throws -> Response {
        let stream = submit(request)
        try wait { $0.answers[stream]?.isEnded == true || $0.resets[stream] != nil }
        return answers[stream] ?? Response()
    }

    /// Reads and writes until the condition holds; throws when the connection ends before, or nothing comes for long.
    func wait(until condition: (TestClient) -> Bool) throws {
        try write()
        while !condition(self) {
            guard try readOnce() else { throw Failure.ended }
            try write()
        }
    }

    func submitPing() {
        nghttp2_submit_ping(session, 0, nil)
    }

    /// Nothing arrives for so long.
    func isQuiet(forMilliseconds milliseconds: Int32) throws -> Bool {
        try stream.isQuiet(forMilliseconds: milliseconds)
    }

    func waitForEnd() throws {
        while try readOnce() {}
    }

    /// Makes this side open as many streams as it likes: tells nghttp2 of SETTINGS that never came, and keeps the
    /// acknowledgement back.
    func forgetStreamLimit() throws {
        try write()
        let settings: [UInt8] = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 3, 232]
        try #require(nghttp2_session_mem_recv(session, settings, settings.count) == settings.count)
        var chunk: UnsafePointer<UInt8>?
        while nghttp2_session_mem_send(session, &chunk) > 0 {}
    }

    private func readOnce() throws -> Bool {
        guard let bytes = try stream.read() else {
            isEnded = true
            return false
        }
        return nghttp2_session_mem_recv(session, bytes, bytes.count) >= 0
    }

    /// Sends what is queued after `spoil` has been at each frame.
    func writeSpoiled(_ spoil: (inout [UInt8]) -> Void) throws {
        var chunk: UnsafePointer<UInt8>?
        while true {
            let count = nghttp2_session_mem_send(session, &chunk)
            guard count > 0 else { return }
            var bytes = Array(UnsafeBufferPointer(start: chunk, count: count))
            spoil(&bytes)
            do {
                try bytes.withUnsafeBytes { try stream.write($0) }
            } catch Failure.ended {
                return
            }
        }
    }
}

extension TestClient {
    final class ClientBox {
        weak var client: TestClient?
    }

    private static func client(_ user: UnsafeMutableRawPointer?) -> TestClient? {
        user.flatMap { Unmanaged<ClientBox>.fromOpaque($0).takeUnretainedValue().client }
    }

    private static func fill(_ callbacks: OpaquePointer?) {
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameCount, value, valueCount, _, user in
            let name = String(decoding: UnsafeBufferPointer(start: name, count: nameCount), as: UTF8.self)
            let value = String(decoding: UnsafeBufferPointer(start: value, count: valueCount), as: UTF8.self)
            if let stream = frame?.pointee.hd.stream_id {
                TestClient.client(user)?.answers[stream, default: Response()].headers[name] = value
                if name == ":status" { TestClient.client(user)?.answers[stream]?.status = Int(value) ?? 0 }
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, _, stream, bytes, count, user in
            let chunk = UnsafeBufferPointer(start: bytes, count: count)
            TestClient.client(user)?.answers[stream, default: Response()].body.append(contentsOf: chunk)
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
            if let frame { TestClient.client(user)?.received(frame.pointee) }
            return 0
        }
    }

    private func received(_ frame: nghttp2_frame) {
        let stream = frame.hd.stream_id
        let isHeaders = frame.hd.type == UInt8(NGHTTP2_HEADERS.rawValue)
        if isHeaders || frame.hd.type == UInt8(NGHTTP2_DATA.rawValue), frame.hd.flags & 1 != 0 {
            answers[stream]?.isEnded = true
            answers[stream]?.endedWithHeaders = isHeaders
        }
        switch UInt32(frame.hd.type) {
        case NGHTTP2_RST_STREAM.rawValue: resets[stream] = frame.rst_stream.error_code
        case NGHTTP2_GOAWAY.rawValue:
            let data = UnsafeBufferPointer(start: frame.goaway.opaque_data, count: frame.goaway.opaque_data_len)
            goAways.append(
                GoAway(lastStream: frame.goaway.last_stream_id, debugData: String(decoding: data, as: UTF8.self)))
        case NGHTTP2_PING.rawValue: pingAcknowledgements += Int(frame.hd.flags & 1)
        case NGHTTP2_SETTINGS.rawValue:
            for index in 0..<frame.settings.niv
            where frame.settings.iv[index].settings_id == Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue) {
                streamLimits.append(frame.settings.iv[index].value)
            }
        default: break
        }
    }
}

/// What is left of a body to send.
final class RequestBody {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) {
        rest = bytes[...]
    }

    static func fill(
        _ room: UnsafeMutablePointer<UInt8>?, _ length: Int, _ flags: UnsafeMutablePointer<UInt32>?,
        _ source: UnsafeMutablePointer<nghttp2_data_source>?
    ) -> Int {
        guard let room, let flags, let pointer = source?.pointee.ptr else { return 0 }
        let body = Unmanaged<RequestBody>.fromOpaque(pointer).takeUnretainedValue()
        let part = body.rest.prefix(length)
        for (offset, byte) in part.enumerated() { room[offset] = byte }
        body.rest = body.rest.dropFirst(part.count)
        if body.rest.isEmpty { flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        return part.count
    }
}

/// Header bytes at addresses that hold for one call.
struct HeaderArray {
    private let bytes: [UInt8]
    private let counts: [(name: Int, value: Int)]

    init(_ names: [[UInt8]], _ values: [[UInt8]]) {
        bytes = zip(names, values).flatMap { $0 + $1 }
        counts = zip(names, values).map { ($0.count, $1.count) }
    }

    func withValues<Result>(_ body: (UnsafeBufferPointer<nghttp2_nv>) -> Result) -> Result {
        var copy = bytes
        return copy.withUnsafeMutableBufferPointer { room in
            var fields: [nghttp2_nv] = []
            var start = room.baseAddress
            for count in counts {
                let value = start.map { $0 + count.name }
                fields.append(
                    nghttp2_nv(name: start, value: value, namelen: count.name, valuelen: count.value, flags: 0))
                start = value.map { $0 + count.value }
            }
            return fields.withUnsafeBufferPointer(body)
        }
    }
}
