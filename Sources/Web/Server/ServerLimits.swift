/// How many clients there may be, and how long one may take over what is for it to do. What the server itself takes its time
/// for is not limited here: an answer may take as long as somebody waits for it.
package struct ServerLimits: Sendable {
    /// From this number on a new connection takes the place of the one that has kept the server waiting longest: see
    /// ``ConnectionTable``.
    package var crowdedAt = 512
    /// Further ones are accepted when one of these has ended. The places above ``crowdedAt`` are for this machine's own
    /// connections, such as health checks.
    package var connectionsMax = 576
    /// A connection with no request under way, or with a part of its first lines, is closed after this.
    package var idle: Duration = .seconds(10)
    /// What a body may come short of ``uploadBytesPerSecond`` by, added up.
    package var uploadSlack: Duration = .seconds(20)
    /// Of a body: far below what the slowest line brings.
    package var uploadBytesPerSecond = 128
    /// A client that takes nothing of its answer for so long is gone, or wants to be waited for. One that reads little by
    /// little has to have read what the kernel takes at once, some 100 KB.
    package var write: Duration = .seconds(300)
    /// Of a client that sends no more: it may still read an answer, or be gone; nothing tells until one is written. And of one
    /// that is told no more, and may still send.
    package var halfClosed: Duration = .seconds(5)
    /// The time that a server which is told to stop leaves to requests under way. The process ends within 10 s, and the
    /// daemon needs the rest of that time.
    package var stop: Duration = .seconds(5)
    /// How often a connection is looked at.
    package var lookEvery: Duration = .seconds(1)

    package init() {}
}

/// How far a connection's client is with what it has to do, and what is to be done about that. Time goes in.
struct ConnectionProgress {
    enum Action: Hashable {
        case wait
        /// Its body comes too slowly: that can still be said.
        case refuseUpload
        case close
    }

    private let limits: ServerLimits
    /// Requests whose answer is not written to its end.
    private var requests = 0
    private var isReadingBody = false
    private var isAnswering = false
    private var begunAt: Duration
    private var idleSince: Duration
    /// Of the body: what the client has left of ``ServerLimits/uploadSlack``.
    private var slack: Duration
    /// Since when it is waited for more of the body; nil: the server has enough to do with what came.
    private var wantedSince: Duration?
    private var refusedAt: Duration?
    private var halfClosedAt: Duration?
    private var outputClosedAt: Duration?
    /// Bytes of answers that the kernel has not taken.
    private var unwritten = 0
    private var writtenAt: Duration

    init(_ limits: ServerLimits, at now: Duration) {
        self.limits = limits
        (idleSince, writtenAt, begunAt) = (now, now, now)
        slack = limits.uploadSlack
    }

    /// An answer that ends now is the last one.
    var isLastAnswer: Bool { refusedAt != nil }

    /// Since when the client has kept the server waiting: for its request, for the rest of it, or to take the answer; nil:
    /// the server is at work. A client that sends little by little waits from the start of its request.
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

    /// The server would take more.
    mutating func wants(at now: Duration) {
        if isReadingBody, wantedSince == nil { wantedSince = now }
    }

    mutating func bodyArrived(_ bytes: Int, at now: Duration) {
        // Of several pieces that come together the first was waited for.
        let waited = wantedSince.map { now - $0 } ?? .zero
        wantedSince = nil
        let earned = Duration.seconds(Double(bytes) / Double(limits.uploadBytesPerSecond))
        slack = min(limits.uploadSlack, slack - waited + earned)
    }

    mutating func requestEnded() {
        isReadingBody = false
        wantedSince = nil
    }

    /// The connection failed. True where that was within a body, which has no end then.
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

    /// Nothing more is answered, whatever was asked.
    mutating func outputClosed(at now: Duration) { outputClosedAt = now }

    /// Looked at around whatever is written, and now and then: more than before is no work of the client's.
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
        // Nobody may be there to answer to; what has begun to be written finds that out by itself.
        if let halfClosedAt, !isAnswering, now - halfClosedAt >= limits.halfClosed { return .close }
        return .wait
    }
}
