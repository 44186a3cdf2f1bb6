/// The limits on the number of clients, and on the time that a client may take for its part of a request. They do not
/// limit the server's own work: a client may wait for a response without limit.
package struct ServerLimits: Sendable {
    /// The number of connections from which a new one displaces the one that has kept the server waiting longest. See
    /// ``ConnectionTable``.
    package var crowdedAt = 512
    /// The maximum number of connections. The server accepts another one only after one of them ends. The places above
    /// ``crowdedAt`` are for connections from this machine, such as health checks.
    package var connectionsMax = 576
    /// The time after which a connection is closed if it has no request, or only a part of a request's head has
    /// arrived.
    package var idle: Duration = .seconds(10)
    /// The maximum time by which a body may lag behind ``uploadBytesPerSecond``.
    package var uploadSlack: Duration = .seconds(20)
    /// The minimum rate of a body, in bytes per second. Even the slowest network is much faster.
    package var uploadBytesPerSecond = 128
    /// The time after which a client that reads nothing of its response is disconnected. The kernel takes more only
    /// after some 100 KB are read, so a slow client must read that much in this time.
    package var write: Duration = .seconds(300)
    /// The time after which a half-closed connection is closed if no response has begun. The client may still read a
    /// response, or it may be gone, which only a write detects. The limit also applies after the server has closed its
    /// own sending side or refused an upload.
    package var halfClosed: Duration = .seconds(5)
    /// The time that a stopping server gives to requests in progress. The process exits within 10 s, and the daemon
    /// needs the rest of that time.
    package var stop: Duration = .seconds(5)
    /// The interval between checks of a connection.
    package var lookEvery: Duration = .seconds(1)

    package init() {}
}

/// Tracks how a connection's client progresses with its part of a request, and decides what the server does. The caller
/// passes the current time.
struct ConnectionProgress {
    enum Action: Hashable {
        case wait
        /// The body arrives too slowly; the server can still send a refusal.
        case refuseUpload
        case close
    }

    private let limits: ServerLimits
    /// The number of requests whose response is not completely written.
    private var requests = 0
    private var isReadingBody = false
    private var isAnswering = false
    private var begunAt: Duration
    private var idleSince: Duration
    /// The part of ``ServerLimits/uploadSlack`` that the client has left for this body.
    private var slack: Duration
    /// The time since which the server waits for more of the body. `nil` if the server still processes what has
    /// arrived.
    private var wantedSince: Duration?
    private var refusedAt: Duration?
    private var halfClosedAt: Duration?
    private var outputClosedAt: Duration?
    /// The number of response bytes that the kernel has not taken.
    private var unwritten = 0
    private var writtenAt: Duration

    init(_ limits: ServerLimits, at now: Duration) {
        self.limits = limits
        (idleSince, writtenAt, begunAt) = (now, now, now)
        slack = limits.uploadSlack
    }

    /// Whether the connection closes after the current response.
    var isLastAnswer: Bool { refusedAt != nil }

    /// The time since which the client keeps the server waiting: for a request, for the rest of one, or for the client
    /// to read a response. While a body arrives, this is the start of the request. `nil` if the server works on a
    /// complete request.
    var waitsSince: Duration? {
        if unwritten > 0 { return writtenAt }
        if requests == 0 { return idleSince }
        return isReadingBody ? begunAt : nil
    }

    mutating func requestBegan(at now: Duration) {
        begunAt = now
        requests += 1
        isReadingBody = true
        slack = limits.uploadSlack
        wantedSince = nil
    }

    /// Records that the server is ready to read more of the body.
    mutating func wants(at now: Duration) {
        if isReadingBody, wantedSince == nil { wantedSince = now }
    }

    mutating func bodyArrived(_ bytes: Int, at now: Duration) {
        // If several pieces arrive together, the server has waited only for the first one.
        let waited = wantedSince.map { now - $0 } ?? .zero
        wantedSince = nil
        let earned = Duration.seconds(Double(bytes) / Double(limits.uploadBytesPerSecond))
        slack = min(limits.uploadSlack, slack - waited + earned)
    }

    mutating func requestEnded() {
        isReadingBody = false
        wantedSince = nil
    }

    /// Records that the connection failed. Returns whether this cut off a body.
    mutating func breaksBody(at now: Duration) -> Bool {
        if isReadingBody, refusedAt == nil { refusedAt = now }
        return isReadingBody
    }

    mutating func answerBegan() { isAnswering = true }

    mutating func answerEnded(at now: Duration) {
        requests -= 1
        isAnswering = false
        idleSince = now
    }

    mutating func inputClosed(at now: Duration) { halfClosedAt = now }

    /// Records that the server has closed its sending side.
    mutating func outputClosed(at now: Duration) { outputClosedAt = now }

    /// Records the number of unwritten bytes, which the caller measures around each write and at intervals. Only a
    /// decrease counts as progress of the client.
    mutating func isLeft(_ bytes: Int, at now: Duration) {
        if bytes < unwritten || unwritten == 0 && bytes > 0 { writtenAt = now }
        unwritten = bytes
    }

    mutating func look(at now: Duration) -> Action {
        if unwritten > 0, now - writtenAt >= limits.write { return .close }
        if let outputClosedAt {
            return unwritten == 0 && now - max(outputClosedAt, writtenAt) >= limits.halfClosed ? .close : .wait
        }
        if let refusedAt { return now - refusedAt >= limits.halfClosed ? .close : .wait }
        if let wantedSince, now - wantedSince > slack {
            refusedAt = now
            return .refuseUpload
        }
        if requests == 0 { return now - idleSince >= limits.idle ? .close : .wait }
        // The client may be gone. If a response is being written, the write detects it.
        if let halfClosedAt, !isAnswering, now - halfClosedAt >= limits.halfClosed { return .close }
        return .wait
    }
}
