/// What a lane knows of one of its connections. Times are nanoseconds of one monotonic clock.
struct ConnectionState {
    enum Stage {
        /// Goes to `current`, or ends.
        case opening
        /// Where requests start. Goes to `retiring`, or ends.
        case current
        /// Starts nothing more, and may still answer. Ends when nothing is open on it.
        case retiring
    }

    let id: Int
    var stage = Stage.opening
    var warmUp: WarmUp
    /// Nil where the transport sends no PING.
    var liveness: Liveness?
    /// By the peer's last SETTINGS.
    var peerStreamsMax = 0
    var openStreams = 0
    var responses = 0
    /// In a row.
    var missedDeadlines = 0
    /// Since when the peer lets nothing start although nothing is under way.
    var stalledSince: UInt64?
    /// Its end was asked for.
    var isEnding = false

    /// Requests that may be on the wire at once.
    func streamLimit(_ streamsMax: Int, at now: UInt64) -> Int {
        warmUp.streamLimit(whenWide: min(streamsMax, peerStreamsMax), at: now)
    }
}

/// How wide a lane may go on its connection (`ProviderProtocol` sections 8 and 9): one request at a time until APNs has
/// accepted one, then as many as allowed. A rejected first push keeps the peer's limit low, hence the next one is tried
/// alone as well; but tokens that are merely dead must not hold a lane back for ever.
struct WarmUp {
    /// Responses about the token, none accepted, after which the lane goes wide all the same.
    static let tokenRejectionsMax = 10

    private enum Phase {
        /// One request at a time. Goes to `settling`, or to `wide` where SETTINGS are seen.
        case cold(tokenRejections: Int)
        /// Nothing starts: the peer's new SETTINGS may still be on the way. Counts as `wide` in any later round.
        case settling(round: UInt64)
        /// Goes to `cold` on a new connection or any fault.
        case wide
    }

    private var phase = Phase.cold(tokenRejections: 0)
    /// SETTINGS are obeyed as they come: there is no round to wait for.
    private let seesSettings: Bool

    init(seesSettings: Bool) {
        self.seesSettings = seesSettings
    }

    var isCold: Bool {
        if case .cold = phase { return true }
        return false
    }

    func isSettling(at now: UInt64) -> Bool {
        if case .settling(let round) = phase { return now <= round }
        return false
    }

    /// Requests that may be on the wire at once. `now`: of the round of the event loop.
    func streamLimit(whenWide wide: Int, at now: UInt64) -> Int {
        switch phase {
        case .cold: min(1, wide)
        case .settling: isSettling(at: now) ? 0 : wide
        case .wide: wide
        }
    }

    mutating func answered(_ answer: PushResponse, at now: UInt64) {
        guard case .cold(let rejections) = phase else { return }
        if answer.status == 200 {
            settle(now)
        } else if answer.isAboutToken {
            if rejections + 1 < Self.tokenRejectionsMax {
                phase = .cold(tokenRejections: rejections + 1)
            } else {
                settle(now)
            }
        }
    }

    /// A new connection, or a fault that may have cost us the old one.
    mutating func coolDown() {
        phase = .cold(tokenRejections: 0)
    }

    private mutating func settle(_ now: UInt64) {
        phase = seesSettings ? .wide : .settling(round: now)
    }
}

/// Decides when a connection is asked for a sign of life, and when it is given up (`ProviderProtocol` section 8: silent
/// death).
struct Liveness {
    enum Action: Equatable {
        case wait(until: UInt64)
        case ping
        case giveUp
    }

    private let idleInterval: UInt64
    private let silenceInterval: UInt64
    private let deadline: UInt64
    /// Since when something ought to have come: the last bytes, or the first request after idling.
    private var waitingSince: UInt64
    private var pingedAt: UInt64?
    private var isBusy = false

    init(_ limits: LaneLimits, now: UInt64) {
        idleInterval = limits.idlePingInterval.nanoseconds
        silenceInterval = limits.silencePingInterval.nanoseconds
        deadline = limits.pingDeadline.nanoseconds
        waitingSince = now
    }

    /// Bytes came, of whatever kind.
    mutating func heard(at now: UInt64) {
        waitingSince = now
        pingedAt = nil
    }

    /// Answers are waited for, or no longer.
    mutating func isBusy(_ isBusy: Bool, at now: UInt64) {
        if isBusy, !self.isBusy { waitingSince = max(waitingSince, now) }
        self.isBusy = isBusy
    }

    mutating func pinged(at now: UInt64) {
        pingedAt = now
    }

    func action(at now: UInt64) -> Action {
        if let pingedAt { return now >= pingedAt + deadline ? .giveUp : .wait(until: pingedAt + deadline) }
        let due = waitingSince + (isBusy ? silenceInterval : idleInterval)
        return now >= due ? .ping : .wait(until: due)
    }
}
