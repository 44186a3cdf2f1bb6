import Glibc
import HTTP2

/// One request and its answer over plain HTTP/1.1, then the end of the connection. On its loop's thread only.
final class OperationsConnection: EventHandler, TimerTarget {
    private static let headMaxBytes = 8 * 1024
    /// From the connection to the end of the answer.
    private static let lifeMaxMs = 10_000

    private let descriptor: Int32
    private let loop: EventLoop
    private let asked: (OperationsRequest, OperationsConnection) -> Void
    private let closed: () -> Void
    private var head: [UInt8] = []
    private var isHead = false
    private var answer: [UInt8]?
    private var written = 0
    private var isClosed = false

    init(
        descriptor: Int32, loop: EventLoop, asked: @escaping (OperationsRequest, OperationsConnection) -> Void,
        closed: @escaping () -> Void
    ) {
        self.descriptor = descriptor
        self.loop = loop
        self.asked = asked
        self.closed = closed
    }

    func start() {
        guard loop.watch(descriptor, for: .readable, self) else { return abandon() }
        loop.schedule(afterMilliseconds: Self.lifeMaxMs, target: self, tag: 0)
    }

    func ready(_ readiness: Readiness) {
        if answer != nil { return write() }
        if readiness.contains(.readable) { read() } else { end() }
    }

    func roundEnded() {}
    func timerFired(_ tag: Int64) { end() }

    func abandon() {
        guard !isClosed else { return }
        isClosed = true
        close(descriptor)
        closed()
    }

    func respond(_ response: OperationsResponse) {
        guard !isClosed, answer == nil else { return }
        answer = response.bytes(isHead: isHead)
        loop.change(descriptor, to: .writable)
        write()
    }

    private func end() {
        guard !isClosed else { return }
        loop.unwatch(descriptor)
        abandon()
    }

    private func read() {
        var buffer = [UInt8](repeating: 0, count: 2048)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { return }
            guard count > 0 else { return end() }
            head += buffer[..<count]
            if let end = Self.endOfHead(head) { return take(head[..<end]) }
            guard head.count <= Self.headMaxBytes else { return respond(.tooLarge) }
        }
    }

    private func take(_ bytes: ArraySlice<UInt8>) {
        guard let request = OperationsRequest(head: String(decoding: bytes, as: UTF8.self)) else {
            return respond(.malformed)
        }
        isHead = request.method == "HEAD"
        // Nothing more is read: what follows is none of our business.
        loop.change(descriptor, to: [])
        asked(request, self)
    }

    private static func endOfHead(_ bytes: [UInt8]) -> Int? {
        let end = Array("\r\n\r\n".utf8)
        guard bytes.count >= end.count else { return nil }
        return (0...(bytes.count - end.count)).first { Array(bytes[$0..<($0 + end.count)]) == end }
    }

    private func write() {
        guard let answer else { return }
        while written < answer.count {
            let rest = Array(answer[written...])
            let count = send(descriptor, rest, rest.count, Int32(MSG_NOSIGNAL))
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { return }
            guard count > 0 else { return end() }
            written += count
        }
        shutdown(descriptor, Int32(SHUT_WR))
        end()
    }
}
