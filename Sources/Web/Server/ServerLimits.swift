/// The number of clients that a server admits, and the time that a client may take for its part of a request. The
/// server's own work is not limited here: a response may take as long as its client waits for it.
package struct ServerLimits: Sendable {
    /// The number of connections from which a new one displaces the one that has kept the server waiting longest. See
    /// ``ConnectionTable``.
    package var crowdedAt = 512
    /// The maximum number of connections. The server accepts further ones when one of these has ended. The places above
    /// ``crowdedAt`` are for connections from this machine, such as health checks.
    package var connectionsMax = 576
    /// The time after which a connection is closed if no request is under way, or only a part of the request's head has
    /// arrived.
    package var idle: Duration = .seconds(10)
    /// The total time by which a body may fall short of ``uploadBytesPerSecond``.
    package var uploadSlack: Duration = .seconds(20)
    /// The minimum rate of a body, far below that of the slowest line.
    package var uploadBytesPerSecond = 128
    /// The time after which a client that takes nothing of its response is disconnected. A client that reads slowly
    /// must read in this time what the kernel takes at once, some 100 KB.
    package var write: Duration = .seconds(300)
    /// The time after which a half-closed connection is closed. A client that closed its sending side may still read a
    /// response, or be gone; only a write tells. The limit also applies after the server has closed its own sending
    /// side or refused an upload.
    package var halfClosed: Duration = .seconds(5)
    /// The time that a stopping server gives to requests under way. The process exits within 10 s, and the daemon needs
    /// the rest of that time.
    package var stop: Duration = .seconds(5)
    /// The interval between checks of a connection.
    package var lookEvery: Duration = .seconds(1)

    package init() {}
}

/// The progress of a connection's client with its part of a request, and the action that follows. The caller passes
/// the current time.
struct ConnectionProgress {
    enum Action: Hashable {
        case wait
        /// The body arrives too slowly; the server can still send a refusal.
        case refuseUpload
        case close
    }

    private let limits: ServerLimits
    /// The number of requests whose response is not written completely.
    private var requests = 0
    private var isReadingBody = false
    private var isAnswering = false
    private var begunAt: Duration
    private var idleSince: Duration
    /// The part of ``ServerLimits/uploadSlack`` that the client has left for this body.
    private var slack: Duration
    /// The time since which the server waits for more of the body. `nil` if the server is busy with what has arrived.
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

    /// The time since which the client keeps the server waiting: for a request, for the rest of one, or to take a
    /// response. `nil` if the server is at work. For a client that sends a body little by little, it is the start of
    /// the request.
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

    /// Records that the server is ready to take more.
    mutating func wants(at now: Duration) {
        if isReadingBody, wantedSince == nil { wantedSince = now }
    }

    mutating func bodyArrived(_ bytes: Int, at now: Duration) {
        // If several pieces arrive together, the server waited only for the first.
        let waited = wantedSince.map { now - $0 } ?? .zero
        wantedSince = nil
        let earned = Duration.seconds(Double(bytes) / Double(limits.uploadBytesPerSecond))
        slack = min(limits.uploadSlack, slack - waited + earned)
    }

    mutating func requestEnded() {
        isReadingBody = false
        wantedSince = nil
    }

    /// Records that the connection failed. Returns whether it failed within a body, which then has no end.
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

    /// Records that the server sends nothing more, whatever the client requests.
    mutating func outputClosed(at now: Duration) { outputClosedAt = now }

    /// Records the number of unwritten bytes, which is measured around each write and at intervals. An increase is not
    /// progress of the client.
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
        // The client may be gone. A response that is being written detects that itself.
        if let halfClosedAt, !isAnswering, now - halfClosedAt >= limits.halfClosed { return .close }
        return .wait
    }
}
