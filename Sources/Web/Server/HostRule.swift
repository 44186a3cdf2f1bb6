import HTTPTypes
import Hummingbird

/// Rejects a request whose Host field is missing, appears twice or names no host (RFC 9112, section 3.2). A proxy in
/// front of this server could read a different host from such a request.
struct HostRule: RouterMiddleware {
    func handle(
        _ request: Request, context: WebContext, next: (Request, WebContext) async throws -> Response
    ) async throws -> Response {
        // The parser takes the first Host field as the authority, and leaves the other ones among the headers.
        guard let host = request.head.authority, request.header("Host") == nil, Self.isHost(host) else {
            return .text("send one Host field with a host's name\n", .badRequest)
        }
        return try await next(request, context)
    }

    /// Returns whether the text is a host with an optional port, such as `127.0.0.1:8787` or `[::1]:8787`. It accepts
    /// the characters that RFC 3986, sections 3.2.2 and 3.2.3, allows.
    static func isHost(_ text: String) -> Bool {
        let host: Substring.UTF8View
        let port: Substring.UTF8View?
        let bytes = text[...].utf8
        if bytes.first == UInt8(ascii: "[") {
            guard let end = bytes.firstIndex(of: UInt8(ascii: "]")) else { return false }
            host = bytes[bytes.index(after: bytes.startIndex)..<end]
            let rest = bytes[bytes.index(after: end)...]
            guard rest.isEmpty || rest.first == UInt8(ascii: ":") else { return false }
            port = rest.isEmpty ? nil : rest.dropFirst()
            guard host.allSatisfy({ isHexDigit($0) || [UInt8(ascii: ":"), UInt8(ascii: ".")].contains($0) }) else {
                return false
            }
        } else {
            let colon = bytes.firstIndex(of: UInt8(ascii: ":"))
            host = bytes[..<(colon ?? bytes.endIndex)]
            port = colon.map { bytes[bytes.index(after: $0)...] }
            guard host.allSatisfy(isNameByte) else { return false }
        }
        return !host.isEmpty && (port?.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ?? true)
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte | 0x20)
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
            || "-._~%!$&'()*+,;=".utf8.contains(byte)
    }
}
