import Foundation
import TestSupport
import Testing

/// One request on a connection of its own, and its response.
///
/// Foundation's `URLSession` is not used: on Linux it can deadlock if a test is cancelled in the middle of a request.
struct HTTPExchange: Sendable {
    var status: Int
    /// Names in lower case. If a name is repeated, the first value.
    var headers: [String: String] = [:]
    var body: [UInt8] = []

    var text: String { String(decoding: body, as: UTF8.self) }

    /// Follows no redirect and keeps no cookie.
    static func ask(
        _ method: String, _ path: String, port: Int, headers: [String: String] = [:], body: String? = nil
    ) async throws -> HTTPExchange {
        let connection = try RawConnection(port: port)
        var lines = ["\(method) \(path) HTTP/1.1", "Host: 127.0.0.1:\(port)", "Connection: close"]
        lines += headers.map { "\($0): \($1)" }
        if let body { lines.append("Content-Length: \(body.utf8.count)") }
        // A server that refuses a large body may respond and close before all of it is written.
        try? await connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? ""))
        return try parse(try await connection.receiveAll(), isHead: method == "HEAD")
    }

    private static let lineEnd = Array("\r\n".utf8)

    /// Skips interim responses (1xx).
    private static func parse(_ bytes: [UInt8], isHead: Bool) throws -> HTTPExchange {
        let separator = Array("\r\n\r\n".utf8)
        let end = try #require(bytes.firstRange(of: separator), "no complete response head")
        let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        let status = try #require(head.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) })
        let rest = Array(bytes[end.upperBound...])
        guard status >= 200 else { return try parse(rest, isHead: isHead) }
        var exchange = HTTPExchange(status: status)
        for line in head.dropFirst() {
            let colon = try #require(line.firstIndex(of: ":"))
            let name = line[..<colon].lowercased()
            let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            exchange.headers[name] = exchange.headers[name] ?? value
        }
        guard !isHead else { return exchange }
        if exchange.headers["transfer-encoding"]?.lowercased() == "chunked" {
            exchange.body = try unchunked(rest)
        } else {
            if let length = exchange.headers["content-length"] {
                try #require(Int(length) == rest.count, "the body ends early")
            }
            exchange.body = rest
        }
        return exchange
    }

    private static func unchunked(_ bytes: [UInt8]) throws -> [UInt8] {
        var rest = bytes[...]
        var body: [UInt8] = []
        while true {
            let end = try #require(rest.firstRange(of: lineEnd), "the body ends early")
            let size = String(decoding: rest[rest.startIndex..<end.lowerBound], as: UTF8.self)
            let count = try #require(Int(size, radix: 16))
            guard count > 0 else { return body }
            rest = rest[end.upperBound...]
            try #require(rest.count >= count + lineEnd.count, "the body ends early")
            body += rest.prefix(count)
            rest = rest.dropFirst(count + lineEnd.count)
        }
    }
}
