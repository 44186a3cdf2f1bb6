import Foundation
import Synchronization

/// A proxy that forwards every byte late, as a network with a long round-trip time does.
package final class DelayingProxy: Sendable {
    package enum Server: Sendable {
        /// The socket of a PostgreSQL cluster in this folder.
        case cluster(folder: String)
        case loopback(port: UInt16)
    }

    package struct Failed: Error {
        package let code: Int32
    }

    /// The bytes from one side, with the times at which the other side gets them. `nil` bytes mean that the side has
    /// closed.
    private struct Line: Sendable {
        private let entries = Shared()
        private let ready = DispatchSemaphore(value: 0)

        private final class Shared: Sendable {
            let entries = Mutex<[(due: ContinuousClock.Instant, bytes: [UInt8]?)]>([])
        }

        func put(_ bytes: [UInt8]?, after delay: Duration) {
            entries.entries.withLock { $0.append((ContinuousClock.now + delay, bytes)) }
            ready.signal()
        }

        func take() -> [UInt8]? {
            ready.wait()
            let entry = entries.entries.withLock { $0.removeFirst() }
            let left = ContinuousClock.now.duration(to: entry.due)
            if left > .zero { usleep(UInt32(left / .microseconds(1))) }
            return entry.bytes
        }
    }

    private let server: Server
    private let delay: Duration
    private let listener: Int32
    private let directory: TemporaryDirectory
    /// The port of a proxy to a loopback port, or 0.
    package let port: UInt16

    /// - Parameter roundTrip: the additional round-trip time. Each direction gets half of it.
    package init(to server: Server, roundTrip: Duration) throws {
        self.server = server
        delay = roundTrip / 2
        directory = try TemporaryDirectory()
        switch server {
        case .cluster:
            listener = try PostgresSocket.listen(directory.file(".s.PGSQL.5432"))
            port = 0
        case .loopback: (listener, port) = try Self.listen()
        }
        accept()
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    package func url(_ database: String) -> String { "postgres://postgres@/\(database)?host=\(directory.path)" }

    private static func listen() throws -> (file: Int32, port: UInt16) {
        let file = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var port: UInt16 = 0
        guard file >= 0, withLoopback(&port, { bind(file, $0, $1) }) == 0, Glibc.listen(file, 64) == 0 else {
            throw Failed(code: errno)
        }
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withLoopback(&port) { address, _ in getsockname(file, address, &size) }
        return (file, port)
    }

    /// Calls the body with the address of a loopback port. Then sets `port` to the port of the address.
    private static func withLoopback(
        _ port: inout UInt16, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        address.sin_port = port.bigEndian
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        return code
    }

    private static func connect(_ server: Server) -> Int32? {
        switch server {
        case .cluster(let folder): return PostgresSocket.connect("\(folder)/.s.PGSQL.5432")
        case .loopback(var port):
            let file = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            guard file >= 0 else { return nil }
            if withLoopback(&port, { Glibc.connect(file, $0, $1) }) == 0 { return file }
            close(file)
            return nil
        }
    }

    private func accept() {
        Thread { [listener, server, delay] in
            defer { close(listener) }
            while true {
                let client = Glibc.accept(listener, nil, nil)
                guard client >= 0 else { return }
                _ = fcntl(client, F_SETFD, FD_CLOEXEC)
                guard let far = Self.connect(server) else {
                    close(client)
                    continue
                }
                // The direction that ends last closes both files.
                let open = Countdown(2)
                for (source, sink) in [(client, far), (far, client)] {
                    let line = Line()
                    Thread { Self.read(source, into: line, delay) }.start()
                    Thread {
                        Self.write(line, to: sink)
                        shutdown(source, Int32(SHUT_RDWR))
                        shutdown(sink, Int32(SHUT_RDWR))
                        guard open.isLast() else { return }
                        close(client)
                        close(far)
                    }.start()
                }
            }
        }.start()
    }

    private static func read(_ source: Int32, into line: Line, _ delay: Duration) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(source, &buffer, buffer.count, 0)
            guard count > 0 else { return line.put(nil, after: delay) }
            line.put(Array(buffer[..<count]), after: delay)
        }
    }

    private static func write(_ line: Line, to sink: Int32) {
        while let bytes = line.take() {
            var sent = 0
            while sent < bytes.count {
                let more = bytes[sent...].withUnsafeBytes {
                    send(sink, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard more > 0 else { return }
                sent += more
            }
        }
    }

    private final class Countdown: Sendable {
        private let left: Mutex<Int>

        init(_ count: Int) { left = Mutex(count) }

        func isLast() -> Bool {
            left.withLock { left in
                left -= 1
                return left == 0
            }
        }
    }
}
