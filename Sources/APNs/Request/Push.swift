import COpenSSL

/// The headers that all pushes of a batch have in common (`ProviderProtocol` section 4).
package struct PushHeaders: Hashable, Sendable {
    /// Bundle id with the push type's suffix.
    package var topic: String
    package var pushType: String
    /// 10, 5 or 1.
    package var priority: Int
    /// UNIX seconds; 0 = one attempt, not stored; nil = header left out, APNs' own storage policy.
    package var expiration: Int64?
    /// At most 64 bytes.
    package var collapseID: String?

    package init(topic: String, pushType: String, priority: Int, expiration: Int64? = nil, collapseID: String? = nil) {
        self.topic = topic
        self.pushType = pushType
        self.priority = priority
        self.expiration = expiration
        self.collapseID = collapseID
    }
}

/// One request to APNs. Rows of a batch share the storage of a payload that does not differ between them.
package struct Push: Sendable {
    /// The caller's name for it, given back with the response.
    package var tag: Int64
    package var id: PushID
    /// The token's bytes, not hex.
    package var token: [UInt8]
    /// JSON in UTF-8.
    package var payload: [UInt8]
    /// Its entry in the batch's sheet of the journal; nobody keeps one of a push below 0.
    package var entry: Int32 = -1

    package init(tag: Int64, id: PushID, token: [UInt8], payload: [UInt8]) {
        self.tag = tag
        self.id = id
        self.token = token
        self.payload = payload
    }
}

/// What crosses from `Sending` to a lane at once: about a thousand pushes under the same headers. The first ones
/// should be those most likely to be accepted: a fresh connection is warmed up with them.
package struct PushBatch: Sendable {
    package var headers: PushHeaders
    package var pushes: [Push]
    /// Where the lane writes down what it starts and hears; nil: nowhere.
    package var journal: JournalSheet?
    /// Asked before each request; nil: nothing holds them back.
    package var gate: StartGate? { didSet { recallCount = gate?.recallCount ?? 0 } }
    /// The gate's count of recalls when the gate was set.
    private(set) var recallCount: UInt64 = 0
    /// No request starts from this moment on, by ``BootClock``.
    package var startBefore = BootClock.never

    package init(headers: PushHeaders, pushes: [Push]) {
        self.headers = headers
        self.pushes = pushes
    }
}

/// The value of `apns-id`: a UUID as 16 bytes, written 8-4-4-4-12 in lower case (`ProviderProtocol` section 4).
package struct PushID: Hashable, Sendable, CustomStringConvertible {
    package var high: UInt64
    package var low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Characters in the written form.
    package static let textCount = 36

    /// The 36 characters, as bytes.
    package var utf8: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.textCount) { buffer, count in
            write(to: UnsafeMutableRawBufferPointer(buffer))
            count = Self.textCount
        }
    }

    /// Writes the 36 characters to the front of `buffer`, which must have room for them.
    func write(to buffer: UnsafeMutableRawBufferPointer) {
        var position = 0
        for index in 0..<32 {
            if index == 8 || index == 12 || index == 16 || index == 20 {
                buffer[position] = UInt8(ascii: "-")
                position += 1
            }
            let word = index < 16 ? high : low
            buffer[position] = HexDigit.lowerCase(UInt8(truncatingIfNeeded: word >> UInt64(60 - 4 * (index % 16))) & 15)
            position += 1
        }
    }

    package var description: String { String(decoding: utf8, as: UTF8.self) }
}

enum HexDigit {
    /// The character for a value below 16.
    static func lowerCase(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}

/// Makes the `apns-id` of a delivery: a UUID version 5 (RFC 9562 section 5.5), the same on every attempt.
package struct PushIDSpace: Hashable, Sendable {
    private static let nameBytes = 3 * 8
    private static let namespaceBytes = 16

    package let namespace: PushID

    package init(namespace: PushID) {
        self.namespace = namespace
    }

    /// The name is the three numbers, eight bytes each, big-endian. Takes a fraction of a microsecond.
    package func id(run: Int64, device: Int64, generation: Int) -> PushID {
        let name = (
            namespace.high.bigEndian, namespace.low.bigEndian, run.bigEndian, device.bigEndian,
            Int64(generation).bigEndian
        )
        return withUnsafeBytes(of: name) { name in
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Int(SHA_DIGEST_LENGTH)) { digest in
                // Fails for no input: the low-level SHA-1 has no state that could be missing.
                _ = fanfare_sha1(name.baseAddress, Self.namespaceBytes + Self.nameBytes, digest.baseAddress)
                let digest = UnsafeRawBufferPointer(digest)
                let high = UInt64(bigEndian: digest.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
                let low = UInt64(bigEndian: digest.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
                return PushID(
                    high: high & 0xffff_ffff_ffff_0fff | 0x5000,
                    low: low & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000)
            }
        }
    }
}

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
