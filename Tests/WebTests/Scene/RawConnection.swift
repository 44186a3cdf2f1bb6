import Foundation
import TestSupport
import Testing

/// A connection on which a test writes and reads bytes as it likes: what no client library would do.
final class RawConnection: Sendable {
    private let file: Int32

    init(port: Int) throws {
        file = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var patience = timeval(tv_sec: Int(Process.longest.components.seconds), tv_usec: 0)
        for direction in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(file, SOL_SOCKET, direction, &patience, socklen_t(MemoryLayout<timeval>.size))
        }
        let connected = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(file, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(connected == 0)
    }

    deinit { close(file) }

    /// Begins a request with a body in chunks, of which the first may come with it: a server that does not wait for long
    /// may have answered before a second call sends anything.
    func begin(_ method: String, _ path: String, token: String, chunk: String? = nil) async throws {
        let first = chunk.map { "\(String($0.utf8.count, radix: 16))\r\n\($0)\r\n" } ?? ""
        try await send(
            "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(token)\r\n"
                + "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n\(first)")
    }

    func chunk(_ text: String) async throws { try await chunk(Array(text.utf8)) }

    func chunk(_ bytes: [UInt8]) async throws {
        try await send(Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + Array("\r\n".utf8))
    }

    func endOfChunks() async throws { try await send("0\r\n\r\n") }

    func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) async throws {
        try await OwnThread.run { [file] in
            var rest = bytes[...]
            while !rest.isEmpty {
                let sent = rest.withUnsafeBytes {
                    Foundation.send(file, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                try #require(sent > 0)
                rest = rest.dropFirst(sent)
            }
        }
    }

    /// Reads until the text has come, or the end; returns all of this call.
    func receive(until text: String) async throws -> String {
        try await OwnThread.run { [file] in
            var received: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while !String(decoding: received, as: UTF8.self).contains(text) {
                let count = recv(file, &buffer, buffer.count, 0)
                guard count > 0 else { break }
                received += buffer[..<count]
            }
            return String(decoding: received, as: UTF8.self)
        }
    }

    /// Reads until the server closes the connection.
    func receiveAll() async throws -> [UInt8] {
        try await OwnThread.run { [file] in
            var received: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = recv(file, &buffer, buffer.count, 0)
                guard count > 0 else { return received }
                received += buffer[..<count]
            }
        }
    }

    /// What comes within so many seconds, up to the first pause.
    func receive(within seconds: Int32) async throws -> String {
        try await OwnThread.run { [file] in
            var waiting = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, seconds * 1000) > 0 else { return "" }
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            let count = recv(file, &buffer, buffer.count, 0)
            return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
        }
    }

    /// Reads on.
    func sendsNoMore() { shutdown(file, Int32(SHUT_WR)) }

    /// Nothing more is sent, or read either.
    func leave() { shutdown(file, Int32(SHUT_RDWR)) }
}
