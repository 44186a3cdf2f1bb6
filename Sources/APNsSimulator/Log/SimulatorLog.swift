import Platform

/// One request as the simulator saw it. The entry is recorded before the response is sent, so a client that has the
/// response finds the entry. Tokens are not redacted, because tests count by them and no real device has them.
package struct SimulatorLogEntry: Hashable, Sendable {
    /// The number of the request, from 1, across both environments.
    package var sequence: Int
    /// The time when the request was complete, in milliseconds since 1970.
    package var timeMs: Int64
    /// A number that is unique during the life of the simulator.
    package var connection: Int
    package var environment: SimulatorEnvironment
    package var stream: Int
    /// The token in lower-case hex, or as sent if it is not hex. `nil` if the path has none.
    package var token: String?
    /// The id as sent, or as created for the response.
    package var apnsID: String
    package var topic: String?
    package var pushType: String?
    package var priority: String?
    package var expiration: String?
    package var collapseID: String?
    package var payloadBytes: Int
    /// The payload, with ``SimulatorOptions/logsPayloads``. It is cut at APNs' maximum payload size.
    package var payload: [UInt8]?
    /// The status of the response, even if a fault suppressed the response. 0 means that the push was not processed.
    package var status: Int
    package var reason: String?
    /// Whether the push was checked and its response never sent, because of a fault, the end of the connection or the
    /// client's own reset. The value is final once the connection has ended.
    package var isAnswerLost = false
    /// The fault script's action in place of the response, or in addition to it.
    package var fault: String?
    /// The number of open streams on this connection, including this one.
    package var openStreams: Int
    /// Whether an earlier request on this connection was accepted.
    package var hadAcceptance: Bool
    package var hasAuthorization: Bool
    /// A mark that distinguishes provider tokens: the beginning of the SHA-256 of `authorization`, in hex. It reveals
    /// no token.
    package var authorizationHash: String?

    var line: [UInt8] {
        var line = JSONLine()
        line.add("sequence", sequence)
        line.add("time_ms", timeMs)
        line.add("connection", connection)
        line.add("environment", environment.rawValue)
        line.add("stream", stream)
        line.add("token", token)
        line.add("apns_id", apnsID)
        line.add("topic", topic)
        line.add("push_type", pushType)
        line.add("priority", priority)
        line.add("expiration", expiration)
        line.add("collapse_id", collapseID)
        line.add("payload_bytes", payloadBytes)
        line.add("payload", payload.map { String(decoding: $0, as: UTF8.self) })
        line.add("status", status)
        line.add("reason", reason)
        line.add("answer_lost", isAnswerLost)
        line.add("fault", fault)
        line.add("open_streams", openStreams)
        line.add("had_acceptance", hadAcceptance)
        line.add("has_authorization", hasAuthorization)
        line.add("authorization_hash", authorizationHash)
        return line.finished()
    }
}

/// The simulator's counts so far.
package struct SimulatorCounts: Hashable, Sendable {
    package var requests = 0
    package var accepted = 0
    /// Rejections by reason. A status with no reason counts under its number.
    package var rejected: [String: Int] = [:]
    /// The accepted and rejected requests whose response was never sent.
    package var lostAnswers = 0
    /// The requests and connects that the fault script affected.
    package var faults = 0
    package var refusedStreams = 0
    /// All connections that completed the TLS handshake.
    package var connections = 0
    package var openConnections = 0
}

/// The server's counts of the requests for one push or one device, by outcome.
package struct RequestTally: Hashable, Sendable {
    /// Responses with 200, even if the client did not receive them. More than one is a duplicate on the device.
    package var accepted = 0
    /// All other responses, whether they arrived or not.
    package var refused = 0
    /// The accepted and rejected requests whose response was never sent.
    package var lost = 0
    /// Requests that were not processed: refused streams, resets and GOAWAY.
    package var untouched = 0

    package init() {}

    package var requests: Int { accepted + refused + untouched }

    fileprivate mutating func count(_ entry: SimulatorLogEntry) {
        switch entry.status {
        case 0: untouched += 1
        case 200: accepted += 1
        default: refused += 1
        }
        if entry.isAnswerLost { lost += 1 }
    }
}

extension [SimulatorLogEntry] {
    /// The hashes of the distinct provider tokens.
    package var authorizationHashes: Set<String> { Set(compactMap(\.authorizationHash)) }

    /// The tallies by `apns-id`.
    package var talliesByID: [String: RequestTally] {
        reduce(into: [:]) { $0[$1.apnsID, default: RequestTally()].count($1) }
    }

    /// The tallies by token in lower-case hex. Requests with no token are left out.
    package var talliesByToken: [String: RequestTally] {
        reduce(into: [:]) { tallies, entry in
            if let token = entry.token { tallies[token, default: RequestTally()].count(entry) }
        }
    }
}

/// Writes one flat JSON object. `JSONEncoder` is too slow: a line is written for every push, at the rate of a
/// benchmark. The bodies of rejections are also written here.
struct JSONLine {
    private var bytes: [UInt8] = [UInt8(ascii: "{")]

    mutating func add(_ name: StaticString, _ value: String?) {
        guard let value else { return }
        key(name)
        bytes.append(UInt8(ascii: "\""))
        for byte in value.utf8 { append(escaping: byte) }
        bytes.append(UInt8(ascii: "\""))
    }

    mutating func add(_ name: StaticString, _ value: (some FixedWidthInteger)?) {
        guard let value else { return }
        key(name)
        bytes.append(contentsOf: String(value).utf8)
    }

    mutating func add(_ name: StaticString, _ value: Bool) {
        key(name)
        bytes.append(contentsOf: (value ? "true" : "false").utf8)
    }

    func finished() -> [UInt8] { bytes + [UInt8(ascii: "}")] }

    private mutating func key(_ name: StaticString) {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    private mutating func append(escaping byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"):
            bytes.append(UInt8(ascii: "\\"))
            bytes.append(byte)
        case 0..<0x20:
            bytes.append(contentsOf: "\\u00".utf8)
            bytes.append(Hex.digit(byte >> 4))
            bytes.append(Hex.digit(byte & 15))
        default: bytes.append(byte)
        }
    }
}
