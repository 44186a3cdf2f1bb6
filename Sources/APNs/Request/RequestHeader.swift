/// A header that recurs on its connection: a transport that chooses HPACK forms itself has it indexed.
struct RequestHeader: Hashable, Sendable {
    var name: String
    var value: [UInt8]
}

extension PushHeaders {
    /// The headers that all pushes of a batch share, in wire order (`ProviderProtocol` section 4). Before them go
    /// `:method`, `:scheme` and `:authority` (indexed), `:path` and `apns-id` (literal): those two differ per push.
    ///
    /// - Parameter authorization: `bearer <jwt>`; nil where a client certificate speaks for us.
    func sharedHeaders(authorization: [UInt8]?) -> [RequestHeader] {
        var headers: [RequestHeader] = []
        if let authorization {
            headers.append(RequestHeader(name: "authorization", value: authorization))
        }
        headers.append(RequestHeader(name: "apns-push-type", text: pushType))
        headers.append(RequestHeader(name: "apns-topic", text: topic))
        headers.append(RequestHeader(name: "apns-priority", text: String(priority)))
        if let expiration {
            headers.append(RequestHeader(name: "apns-expiration", text: String(expiration)))
        }
        if let collapseID {
            headers.append(RequestHeader(name: "apns-collapse-id", text: collapseID))
        }
        headers.append(RequestHeader(name: "content-type", text: "application/json"))
        return headers
    }
}

extension RequestHeader {
    /// A control character would end the header or the request; it is sent as `?`, which APNs refuses by its own
    /// rules instead of reading a second header.
    fileprivate init(name: String, text: String) {
        self.name = name
        value = text.utf8.map { $0 < 0x20 || $0 == 0x7f ? UInt8(ascii: "?") : $0 }
    }
}

/// The value of `:path`: `/3/device/` and the token in lower-case hex (`ProviderProtocol` section 4).
enum RequestPath {
    static let prefix: StaticString = "/3/device/"

    static func byteCount(tokenBytes: Int) -> Int {
        prefix.utf8CodeUnitCount + 2 * tokenBytes
    }

    /// Writes the path to the front of `buffer`, which must have room for ``byteCount(tokenBytes:)`` bytes.
    static func write(token: [UInt8], to buffer: UnsafeMutableRawBufferPointer) {
        var position = 0
        prefix.withUTF8Buffer { prefix in
            for character in prefix {
                buffer[position] = character
                position += 1
            }
        }
        for byte in token {
            buffer[position] = HexDigit.lowerCase(byte >> 4)
            buffer[position + 1] = HexDigit.lowerCase(byte & 15)
            position += 2
        }
    }
}
