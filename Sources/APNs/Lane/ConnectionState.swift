/// A lane's record of one of its connections. Times are nanoseconds of one monotonic clock.
struct ConnectionState {
    enum Phase {
        /// Becomes `current`, or ends.
        case opening
        /// Accepts new requests. Becomes `retiring`, or ends.
        case current
        /// Accepts no new requests, and may still deliver responses. Ends when it has no open streams.
        case retiring
    }

    let id: Int
    var phase = Phase.opening
    var warmUp: WarmUp
    /// `nil` if the transport sends no PING.
    var liveness: Liveness?
    /// The limit in the peer's last SETTINGS.
    var peerStreamsMax = 0
    var openStreams = 0
    var responses = 0
    /// The number of missed deadlines in a row.
    var missedDeadlines = 0
    /// The time since which the peer has allowed no stream although none is open.
    var stalledSince: UInt64?
    /// Whether a close or an abort was requested.
    var isEnding = false

    /// Returns the maximum number of concurrent requests.
    func streamLimit(_ streamsMax: Int, at now: UInt64) -> Int {
        warmUp.streamLimit(whenWide: min(streamsMax, peerStreamsMax), at: now)
    }
}

/// The number of streams that a lane may use on its connection (`ProviderProtocol` sections 8 and 9). The number is one
/// until APNs has accepted a request, then as many as allowed. A rejected first push keeps the peer's limit low, so the
/// next push is also sent alone. After ``tokenRejectionsMax`` rejected tokens the lane widens, because a list of dead
/// tokens must not slow it down.
struct WarmUp {
    /// The number of rejected tokens after which the lane widens without an accepted push.
    static let tokenRejectionsMax = 10

    private enum Phase {
        /// One request at a time. Becomes `settling`, or `wide` if SETTINGS are seen.
        case cold(tokenRejections: Int)
        /// Nothing starts, because the peer's new SETTINGS may not have arrived. Counts as `wide` in any later round.
        case settling(round: UInt64)
        /// Becomes `cold` on a new connection or any fault.
        case wide
    }

    private var phase = Phase.cold(tokenRejections: 0)
    /// Whether SETTINGS take effect on arrival, so that no round has to pass.
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

    /// Returns the maximum number of concurrent requests. `now` is the time of the event loop's round.
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

    /// Resets the warm-up after a new connection, or after a fault that may have ended the old one.
    mutating func coolDown() {
        phase = .cold(tokenRejections: 0)
    }

    private mutating func settle(_ now: UInt64) {
        phase = seesSettings ? .wide : .settling(round: now)
    }
}

/// Decides when a connection is probed, and when it is treated as dead (`ProviderProtocol` section 8).
struct Liveness {
    enum Action: Equatable {
        case wait(until: UInt64)
        case ping
        case giveUp
    }

    private let idleInterval: UInt64
    private let silenceInterval: UInt64
    private let deadline: UInt64
    /// The start of the wait for the peer: the arrival of its last bytes, or the first request after an idle time.
    private var waitingSince: UInt64
    private var pingedAt: UInt64?
    private var isBusy = false

    init(_ limits: LaneLimits, now: UInt64) {
        idleInterval = limits.idlePingInterval.nanoseconds
        silenceInterval = limits.silencePingInterval.nanoseconds
        deadline = limits.pingDeadline.nanoseconds
        waitingSince = now
    }

    /// Records that bytes of any kind arrived.
    mutating func heard(at now: UInt64) {
        waitingSince = now
        pingedAt = nil
    }

    /// Records whether the connection waits for responses.
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
