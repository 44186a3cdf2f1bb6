/// Decides when a connection is asked for a sign of life, and when it is given up (`ProviderProtocol` section 8: silent
/// death). Times are nanoseconds of one monotonic clock.
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

extension Duration {
    var nanoseconds: UInt64 {
        UInt64(clamping: max(0, components.seconds)) * 1_000_000_000
            + UInt64(clamping: max(0, components.attoseconds / 1_000_000_000))
    }
}
