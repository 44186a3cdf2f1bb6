import COpenSSL
import Foundation

/// One connection to a ``ScriptedServer``, after the TLS handshake. Blocking, and impatient: a client that says nothing
/// for long counts as gone.
final class ScriptedConnection {
    /// The client has left.
    struct Ended: Error {}

    private static let patienceSeconds = 100
    private static let prefaceBytes = 24

    /// From 1.
    let number: Int
    private let socket: Int32
    private let handle: OpaquePointer?
    private var buffer: [UInt8] = []
    private var isBeyondPreface = false

    /// Nil where TLS is not agreed. Without a context no TLS is spoken.
    init?(socket: Int32, context: OpaquePointer?, number: Int) {
        self.socket = socket
        self.number = number
        var patience = timeval(tv_sec: Self.patienceSeconds, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var one: Int32 = 1
        setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        guard let context else {
            handle = nil
            return
        }
        handle = SSL_new(context)
        SSL_set_fd(handle, socket)
        ERR_clear_error()
        // On failure deinit cleans up.
        guard SSL_accept(handle) == 1 else { return nil }
    }

    deinit {
        if let handle {
            ERR_clear_error()
            SSL_shutdown(handle)
            SSL_free(handle)
        }
        close(socket)
    }

    /// The client took a TLS session up again.
    var isResumed: Bool { handle.map { SSL_session_reused($0) == 1 } ?? false }

    func write(_ bytes: [UInt8]) throws {
        guard !bytes.isEmpty else { return }
        guard let handle else {
            guard send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else { throw Ended() }
            return
        }
        ERR_clear_error()
        guard SSL_write(handle, bytes, Int32(bytes.count)) == Int32(bytes.count) else { throw Ended() }
    }

    func write(_ frames: Frame...) throws {
        try write(frames.flatMap(\.bytes))
    }

    /// The next frame of the client; throws when it has left.
    func frame() throws -> Frame {
        if !isBeyondPreface {
            _ = try take(Self.prefaceBytes)
            isBeyondPreface = true
        }
        let head = try take(9)
        let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
        let stream = head[5...].reduce(Int32(0)) { $0 << 8 | Int32($1) }
        return Frame(head[3], flags: head[4], stream: stream, try take(length))
    }

    /// The next frame of this kind; others are passed over.
    func frame(_ kind: Frame.Kind) throws -> Frame {
        while true {
            let next = try frame()
            if next.type == kind.rawValue { return next }
        }
    }

    /// The stream of the next whole request.
    func request() throws -> Int32 {
        while true {
            let next = try frame()
            if next.type == Frame.Kind.data.rawValue, next.flags & Frame.endStream != 0 { return next.stream }
        }
    }

    /// What stays when the test has seen enough: reads until the client leaves.
    func readToEnd() throws {
        while true { _ = try frame() }
    }

    /// Some bytes, whatever they mean.
    func bytes() throws -> [UInt8] {
        var room = [UInt8](repeating: 0, count: 16 * 1024)
        guard let handle else {
            let count = recv(socket, &room, room.count, 0)
            guard count > 0 else { throw Ended() }
            return Array(room.prefix(count))
        }
        ERR_clear_error()
        let count = SSL_read(handle, &room, Int32(room.count))
        guard count > 0 else { throw Ended() }
        return Array(room.prefix(Int(count)))
    }

    private func take(_ count: Int) throws -> [UInt8] {
        while buffer.count < count { buffer += try bytes() }
        defer { buffer.removeFirst(count) }
        return Array(buffer.prefix(count))
    }
}

/// An HTTP/2 frame as bytes.
struct Frame: Hashable {
    enum Kind: UInt8 {
        case data = 0, headers = 1, reset = 3, settings = 4, pushPromise = 5, ping = 6, goAway = 7, windowUpdate = 8
    }

    static let endStream: UInt8 = 1
    static let endHeaders: UInt8 = 4
    static let ack: UInt8 = 1

    var type: UInt8
    var flags: UInt8
    var stream: Int32
    var payload: [UInt8]

    init(_ type: UInt8, flags: UInt8 = 0, stream: Int32 = 0, _ payload: [UInt8] = []) {
        self.type = type
        self.flags = flags
        self.stream = stream
        self.payload = payload
    }

    init(_ kind: Kind, flags: UInt8 = 0, stream: Int32 = 0, _ payload: [UInt8] = []) {
        self.init(kind.rawValue, flags: flags, stream: stream, payload)
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = Array(UInt32(payload.count).bytes.suffix(3))
        bytes += [type, flags]
        bytes += UInt32(bitPattern: stream).bytes
        return bytes + payload
    }

    static func settings(_ entries: (UInt16, UInt32)...) -> Frame {
        Frame(.settings, entries.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] + $1.bytes })
    }

    /// An answer's headers: `:status`, literal.
    static func status(_ status: Int, on stream: Int32, ends: Bool = true) -> Frame {
        Frame(
            .headers, flags: endHeaders | (ends ? endStream : 0), stream: stream,
            [0x08, 0x03] + Array(String(status).utf8))
    }

    static func data(_ bytes: [UInt8], on stream: Int32, ends: Bool = true) -> Frame {
        Frame(.data, flags: ends ? endStream : 0, stream: stream, bytes)
    }

    static func reset(_ stream: Int32, code: UInt32) -> Frame { Frame(.reset, stream: stream, code.bytes) }

    static func goAway(lastStream: Int32, code: UInt32 = 0, _ text: String = "") -> Frame {
        Frame(.goAway, UInt32(bitPattern: lastStream).bytes + code.bytes + Array(text.utf8))
    }

    static var settingsAcknowledged: Frame { Frame(.settings, flags: ack) }
}

extension UInt32 {
    fileprivate var bytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}
