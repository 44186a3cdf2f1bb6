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
