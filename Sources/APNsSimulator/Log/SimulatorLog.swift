/// One request as the simulator saw it. Written before the answer leaves, so a client that has its answer finds it here.
/// Tokens are whole: tests count by them, and they are those of a simulator.
package struct SimulatorLogEntry: Hashable, Sendable {
    /// From 1, over both environments.
    package var sequence: Int
    /// When the whole request was there; milliseconds since 1970.
    package var timeMs: Int64
    /// Unique over the life of the simulator.
    package var connection: Int
    package var environment: SimulatorEnvironment
    package var stream: Int
    /// Lower-case hex, or as it came when it is not hex; nil when the path has none.
    package var token: String?
    /// As sent, or as made for the answer.
    package var apnsID: String
    package var topic: String?
    package var pushType: String?
    package var priority: String?
    package var expiration: String?
    package var collapseID: String?
    package var payloadBytes: Int
    /// With ``SimulatorOptions/logsPayloads``; cut at the largest payload APNs takes.
    package var payload: [UInt8]?
    /// The answer, also where a fault kept it from being sent; 0: the push was not processed.
    package var status: Int
    package var reason: String?
    /// The push was judged, and its answer never left: a fault, the end of the connection or the client's own reset
    /// came first. Known at the latest when the connection is over.
    package var isAnswerLost = false
    /// What the fault script did instead of the answer, or to it.
    package var fault: String?
    /// On this connection, this one included.
    package var openStreams: Int
    /// An earlier request on this connection had been accepted.
    package var hadAcceptance: Bool
    package var hasAuthorization: Bool
    /// Tells provider tokens apart without giving one away: the beginning of the SHA-256 of `authorization`, in hex.
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

/// What the simulator has done so far.
package struct SimulatorCounts: Hashable, Sendable {
    package var requests = 0
    package var accepted = 0
    /// By reason; a status without reason counts under its number.
    package var rejected: [String: Int] = [:]
    /// Of the accepted and rejected: those whose answer never left.
    package var lostAnswers = 0
    /// Requests and connects that the fault script touched.
    package var faults = 0
    package var refusedStreams = 0
    /// All that finished the TLS handshake.
    package var connections = 0
    package var openConnections = 0
}

/// How often one push, or one device, was seen, and what became of it: as the server counted it.
package struct RequestTally: Hashable, Sendable {
    /// 200, whether the client learned of it or not: more than one is a double on the device.
    package var accepted = 0
    /// Any other answer, whether it arrived or not.
    package var refused = 0
    /// Of the accepted and refused: the answer never left.
    package var lost = 0
    /// Seen and not processed: refused streams, resets and GOAWAY.
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
    /// One for each provider token that was seen.
    package var authorizationHashes: Set<String> { Set(compactMap(\.authorizationHash)) }

    /// By `apns-id`.
    package var talliesByID: [String: RequestTally] {
        reduce(into: [:]) { $0[$1.apnsID, default: RequestTally()].count($1) }
    }

    /// By token, lower-case hex; requests without one are left out.
    package var talliesByToken: [String: RequestTally] {
        reduce(into: [:]) { tallies, entry in
            if let token = entry.token { tallies[token, default: RequestTally()].count(entry) }
        }
    }
}

/// Writes one flat JSON object. Ours and not `JSONEncoder`: a line is written for every push, at the rate of a benchmark,
/// and the bodies of refusals come from here too.
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
