import Foundation
import Synchronization

/// An HTTP/1.1 server on a free loopback port, for tests of clients. It takes one request on each connection, responds
/// by a closure, and records the request.
package final class LocalServer: Sendable {
    package struct Request: Hashable, Sendable {
        package var method: String
        /// The path with the query.
        package var path: String
        /// The headers, with names in lower case.
        package var headers: [String: String]
        package var body: [UInt8]

        package var text: String { String(decoding: body, as: UTF8.self) }
    }

    package struct Reply: Sendable {
        package var status: Int
        package var headers: [String: String]
        package var body: [UInt8]
        /// Whether the response has a `Content-Length`. Otherwise the body ends when the connection closes.
        package var saysLength = true
        /// Whether no response is sent. The connection then stays open until the client closes it.
        package var isWithheld = false

        package init(_ status: Int, headers: [String: String] = [:], body: some Sequence<UInt8> = [UInt8]()) {
            self.status = status
            self.headers = headers
            self.body = Array(body)
        }

        package init(_ text: String, headers: [String: String] = [:]) {
            self.init(200, headers: headers, body: text.utf8)
        }

        package static var withheld: Reply {
            var reply = Reply(0)
            reply.isWithheld = true
            return reply
        }
    }

    package let port: UInt16
    private let scheme: String
    private let listener: Int32
    private let respond: @Sendable (Request) -> Reply
    private let seen = Mutex<[Request]>([])

    /// - Parameters:
    ///   - certificate: the certificate for TLS, or `nil` for plain HTTP.
    ///   - respond: returns the response, on the connection's thread. ``requests`` already contains the request.
    package init(certificate: LocalCertificate? = nil, respond: @escaping @Sendable (Request) -> Reply) throws {
        (listener, port) = try Self.listen()
        self.respond = respond
        scheme = certificate == nil ? "http" : "https"
        let thread = Thread { [listener, weak self] in
            defer { close(listener) }
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                Thread { [weak self] in
                    guard let stream = ByteStream(connection, certificate) else { return }
                    Exchange(stream: stream).serve { self?.reply(to: $0) }
                }.start()
            }
        }
        thread.start()
    }

    deinit {
        // This wakes the accepting thread, which closes the listener.
        shutdown(listener, Int32(SHUT_RDWR))
    }

    package var url: String { "\(scheme)://127.0.0.1:\(port)" }

    /// All requests so far, oldest first.
    package var requests: [Request] { seen.withLock { $0 } }

    private func reply(to request: Request) -> Reply {
        seen.withLock { $0.append(request) }
        return respond(request)
    }

    private static func listen() throws -> (Int32, UInt16) {
        let file = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(file, address, length) == 0 && Foundation.listen(file, 64) == 0
                    && getsockname(file, address, &length) == 0
            }
        }
        guard isListening else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        return (file, UInt16(bigEndian: address.sin_port))
    }
}

/// One request and its response, on the connection's thread.
struct Exchange {
    let stream: ByteStream

    func serve(_ respond: (LocalServer.Request) -> LocalServer.Reply?) {
        guard let request = read(), let reply = respond(request) else { return }
        if reply.isWithheld {
            while stream.read() != nil {}
            return
        }
        var headers = ["connection": "close"]
        if reply.saysLength { headers["content-length"] = "\(reply.body.count)" }
        headers.merge(reply.headers) { $1 }
        let head = headers.map { "\($0): \($1)\r\n" }.joined()
        stream.write(Array("HTTP/1.1 \(reply.status) Status\r\n\(head)\r\n".utf8) + reply.body)
    }

    private func read() -> LocalServer.Request? {
        var bytes: [UInt8] = []
        while true {
            if let end = Data(bytes).range(of: Data("\r\n\r\n".utf8)) {
                guard var request = Self.head(bytes[..<end.lowerBound]) else { return nil }
                let length = Int(request.headers["content-length"] ?? "0") ?? 0
                if bytes.count >= end.upperBound + length {
                    request.body = Array(bytes[end.upperBound..<(end.upperBound + length)])
                    return request
                }
            }
            guard let more = stream.read() else { return nil }
            bytes += more
        }
    }

    private static func head(_ bytes: ArraySlice<UInt8>) -> LocalServer.Request? {
        let lines = String(decoding: bytes, as: UTF8.self).components(separatedBy: "\r\n")
        let words = lines[0].split(separator: " ").map(String.init)
        guard words.count == 3 else { return nil }
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            headers[parts[0].lowercased()] = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
        }
        return LocalServer.Request(method: words[0], path: words[1], headers: headers, body: [])
    }
}
