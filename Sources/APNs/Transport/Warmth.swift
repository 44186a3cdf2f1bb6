/// How wide a lane may go on its connection (`ProviderProtocol` sections 8 and 9): one request at a time until APNs
/// has accepted one, then as many as allowed. A rejected first push keeps the peer's limit low, hence the next one
/// is tried alone as well; but tokens that are merely dead must not hold a lane back for ever.
struct Warmth {
    /// Answers about the token, none accepted, after which the lane goes wide all the same.
    static let tokenRejectionsMax = 10

    private enum Phase {
        /// One request at a time. Goes to `settling`.
        case cold(tokenRejections: Int)
        /// Answered; the peer's new SETTINGS may still be on the way. Goes to `wide` after one more poll round.
        case settling
        /// Goes to `cold` on a new connection or any fault.
        case wide
    }

    private var phase = Phase.cold(tokenRejections: 0)

    var isCold: Bool {
        if case .cold = phase { return true }
        return false
    }

    var isSettling: Bool {
        if case .settling = phase { return true }
        return false
    }

    /// Requests that may be on the wire at once.
    func streamLimit(whenWide wide: Int) -> Int {
        switch phase {
        case .cold: min(1, wide)
        case .settling: 0
        case .wide: wide
        }
    }

    mutating func answered(_ answer: PushAnswer) {
        guard case .cold(let rejections) = phase else { return }
        if answer.status == 200 {
            phase = .settling
        } else if answer.isAboutToken {
            phase = rejections + 1 >= Self.tokenRejectionsMax ? .settling : .cold(tokenRejections: rejections + 1)
        }
    }

    /// A poll round ended.
    mutating func polled() {
        if case .settling = phase { phase = .wide }
    }

    /// A new connection, or a fault that may have cost us the old one.
    mutating func cooled() {
        phase = .cold(tokenRejections: 0)
    }
}

extension PushAnswer {
    /// The token is at fault, not the request, the credential or the service.
    var isAboutToken: Bool {
        switch reason {
        case .badDeviceToken, .deviceTokenNotForTopic: true
        default: status == 410
        }
    }

    /// The connection that gave this answer is of no more use (`ProviderProtocol` sections 3 and 7).
    var retiresConnection: Bool {
        switch reason {
        case .expiredProviderToken, .unrelatedKeyIdInToken, .tooManyProviderTokenUpdates, .shutdown, .idleTimeout: true
        default: false
        }
    }
}
