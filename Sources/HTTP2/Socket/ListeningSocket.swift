import CNGHTTP2
import Glibc

/// A bound TCP socket that hands every connection it accepts to its owner, on the loop's thread.
package final class ListeningSocket: EventHandler, TimerTarget {
    private static let acceptPauseMs = 50
    private static let backlog: Int32 = 1024

    private let loop: EventLoop
    private let descriptor: Int32
    private let accepted: (Int32) -> Void
    private var isClosed = false
    private var isWatched = false
    private var isRefusing = false
    /// The bound port, never 0.
    package let port: Int

    /// Binds the port. The kernel queues connects until ``listen()``. For `port` 0, the system chooses a free port.
    package init(
        host: String, port: Int, loop: EventLoop, accepted: @escaping (Int32) -> Void
    ) throws(SocketError) {
        self.loop = loop
        self.accepted = accepted
        let socket = try Self.bound(host: host, port: port)
        descriptor = socket
        self.port = try Self.port(of: socket)
    }

    deinit {
        if !isClosed { close(descriptor) }
    }

    /// Starts to accept connections. Call it on the loop's thread.
    package func listen() {
        guard !isClosed, !isWatched, !isRefusing else { return }
        isWatched = loop.watch(descriptor, for: .readable, self)
        if !isWatched { abandon() }
    }

    /// Refuses connects from now on, including those not yet accepted. The port stays bound. Call it on the loop's
    /// thread.
    package func refuse() {
        guard !isClosed, !isRefusing else { return }
        isRefusing = true
        if isWatched { loop.unwatch(descriptor) }
        isWatched = false
        // On Linux, this turns a listening socket back into a bound one.
        shutdown(descriptor, Int32(SHUT_RD))
    }

    /// Accepts connects again after ``refuse()``. Call it on the loop's thread.
    package func resume() {
        guard !isClosed, isRefusing else { return }
        isRefusing = false
        // This cannot fail, because the address is still bound.
        _ = Glibc.listen(descriptor, Self.backlog)
        listen()
    }

    package func ready(_ readiness: Readiness) {
        while true {
            let connection = fanfare_accept(descriptor)
            if connection >= 0 {
                var one: Int32 = 1
                setsockopt(connection, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
                accepted(connection)
                continue
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            case EAGAIN: return
            default:
                // No descriptors are left. The socket stays readable, so try again later to avoid a busy loop.
                loop.change(descriptor, to: [])
                loop.schedule(afterMilliseconds: Self.acceptPauseMs, target: self, tag: 0)
                return
            }
        }
    }

    package func timerFired(_ tag: Int64) {
        if isWatched { loop.change(descriptor, to: .readable) }
    }

    package func roundEnded() {}

    package func abandon() {
        guard !isClosed else { return }
        isClosed = true
        isWatched = false
        close(descriptor)
    }

    private static func bound(host: String, port: Int) throws(SocketError) -> Int32 {
        let first = try bind(host: host, port: port)
        guard port == 0 else { return try listening(first, host, port) }
        // ``refuse()`` would release a port that the system chose. A port that is bound by its number stays bound.
        defer { close(first) }
        let chosen = try Self.port(of: first)
        return try listening(try bind(host: host, port: chosen), host, chosen)
    }

    private static func listening(_ socket: Int32, _ host: String, _ port: Int) throws(SocketError) -> Int32 {
        guard Glibc.listen(socket, backlog) == 0 else {
            let code = errno
            close(socket)
            throw .cannotBind(host: host, port: port, code: code)
        }
        return socket
    }

    private static func bind(host: String, port: Int) throws(SocketError) -> Int32 {
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &found) == 0, let address = found else {
            throw .notAnAddress(host)
        }
        defer { freeaddrinfo(found) }
        let socket = Glibc.socket(address.pointee.ai_family, address.pointee.ai_socktype, 0)
        guard socket >= 0 else { throw .cannotBind(host: host, port: port, code: errno) }
        var one: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        let flagsSet = fcntl(socket, F_SETFL, O_NONBLOCK) >= 0 && fcntl(socket, F_SETFD, FD_CLOEXEC) >= 0
        guard flagsSet, Glibc.bind(socket, address.pointee.ai_addr, address.pointee.ai_addrlen) == 0
        else {
            let code = errno
            close(socket)
            throw .cannotBind(host: host, port: port, code: code)
        }
        return socket
    }

    private static func port(of socket: Int32) throws(SocketError) -> Int {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let code = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) }
        }
        guard code == 0 else { throw .cannotBind(host: "", port: 0, code: errno) }
        // The port has the same offset in sockaddr_in and sockaddr_in6.
        return withUnsafeBytes(of: &storage) { Int($0[2]) << 8 | Int($0[3]) }
    }
}

/// The reason why a listener cannot be opened.
package enum SocketError: Error, Hashable, Sendable, CustomStringConvertible {
    case notAnAddress(String)
    case cannotBind(host: String, port: Int, code: Int32)

    package var description: String {
        switch self {
        case .notAnAddress(let host):
            "\"\(host)\" is not an IP address; name one of this machine, such as 127.0.0.1"
        case .cannotBind(let host, let port, let code):
            "cannot listen on \(host):\(port): \(String(cString: strerror(code))); choose another port, or 0 for a free one"
        }
    }
}
