import COpenSSL
package import Platform

/// The headers that all pushes of a batch share (`ProviderProtocol` section 4).
package struct PushHeaders: Hashable, Sendable {
    /// The bundle id with the push type's suffix.
    package var topic: String
    package var pushType: String
    /// 10, 5 or 1.
    package var priority: Int
    /// The expiry in UNIX seconds. 0 means one attempt, without storage. `nil` omits the header, which leaves storage
    /// to APNs' policy.
    package var expiration: Int64?
    /// The collapse id, at most 64 bytes.
    package var collapseID: String?

    package init(topic: String, pushType: String, priority: Int, expiration: Int64? = nil, collapseID: String? = nil) {
        self.topic = topic
        self.pushType = pushType
        self.priority = priority
        self.expiration = expiration
        self.collapseID = collapseID
    }
}

/// One request to APNs. Pushes of a batch share the storage of an identical payload.
package struct Push: Sendable {
    /// The caller's identifier, returned with the response.
    package var tag: Int64
    package var id: PushID
    /// The token's bytes, not hex.
    package var token: [UInt8]
    /// JSON in UTF-8.
    package var payload: [UInt8]
    /// The push's entry in the batch's journal segment. A negative number means no entry.
    package var entry: Int32 = -1

    package init(tag: Int64, id: PushID, token: [UInt8], payload: [UInt8]) {
        self.tag = tag
        self.id = id
        self.token = token
        self.payload = payload
    }
}

/// The unit that `Sending` hands to a lane: about a thousand pushes under the same headers. Put first the pushes that
/// are most likely to be accepted, because they warm up a new connection.
package struct PushBatch: Sendable {
    package var headers: PushHeaders
    package var pushes: [Push]
    /// The segment where the lane records starts and responses. `nil` for no journal.
    package var journal: JournalSegment?
    /// The gate that is checked before each request. `nil` if nothing holds requests back.
    package var gate: StartGate? { didSet { recallCount = gate?.recallCount ?? 0 } }
    /// The gate's count of recalls at the time when the gate was set.
    private(set) var recallCount: UInt64 = 0
    /// The moment from which on no request starts, by ``BootClock``.
    package var startBefore = BootClock.never

    package init(headers: PushHeaders, pushes: [Push]) {
        self.headers = headers
        self.pushes = pushes
    }
}

/// A header that many requests of a connection repeat. A transport that controls HPACK should index it.
struct RequestHeader: Hashable, Sendable {
    var name: String
    var value: [UInt8]
}

extension PushHeaders {
    /// Returns the headers that all pushes of a batch share, in wire order (`ProviderProtocol` section 4). Before them
    /// go `:method`, `:scheme` and `:authority` (indexed), then `:path` and `apns-id` (literal), which differ per push.
    ///
    /// - Parameter authorization: `bearer <jwt>`. `nil` if a client certificate is used.
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
    /// Creates a header, with `?` in place of each control character. A line break could otherwise inject a second
    /// header. APNs rejects the resulting value by its own rules.
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
            buffer[position] = Hex.digit(byte >> 4)
            buffer[position + 1] = Hex.digit(byte & 15)
            position += 2
        }
    }
}
