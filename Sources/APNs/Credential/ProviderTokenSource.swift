import Glibc
package import Logging
import Synchronization

/// Gives out the one provider token of a key; make one source per key and process.
///
/// APNs takes a token for an hour and wants no new one within 20 minutes (`ProviderProtocol` section 3). The age is
/// measured by a monotonic clock from the moment of signing; the wall clock only fills `iat`. Any thread may ask, and
/// reads from memory: where the token is shared with other processes, ``keepFresh(during:)`` brings the next one in
/// good time. Only when that fails until the token is of no use any more, one is signed for this process alone.
package final class ProviderTokenSource: Sendable {
    /// Age at which a token is replaced, before jitter.
    package static let renewalAge: Duration = .seconds(45 * 60)
    package static let renewalJitter: Duration = .seconds(5 * 60)
    /// APNs answers TooManyProviderTokenUpdates to new tokens within this time.
    package static let renewalIntervalMin: Duration = .seconds(20 * 60)
    /// Shortly before APNs takes a token no more.
    static let ageMax: Duration = .seconds(58 * 60)
    /// A wall clock that moved by more than this since signing explains an expired young token.
    static let clockDriftMax: Duration = .seconds(60)
    /// How long a lane without a token that is of use waits for the shared one.
    static let patience: Duration = .seconds(10)
    /// How long until the next attempt to share a token, or to get the shared one.
    static let retryInterval: Duration = .seconds(30)

    struct State {
        var token: ProviderToken?
        /// By ``ProviderTokenClock/uptime``.
        var signedAt: Duration = .zero
        var renewalAge: Duration = .zero
        /// APNs called this generation expired.
        var expiredGeneration = 0
        /// APNs wants no new token before, by ``ProviderTokenClock/uptime``.
        var heldUntil: Duration = .zero

        /// Signed here, while what all processes share could not be reached.
        var isAlone = false
        /// The others do not know yet that APNs wants no new token.
        var mustShareHold = false
        /// Since when somebody waits for a token that is of use.
        var waitingSince: Duration?
        /// A renewal is under way.
        var isRenewing = false
        /// The last attempt to share failed, which was said.
        var isFailing = false
        /// Whom to wake for a renewal.
        var keepers: [Int: AsyncStream<Void>.Continuation] = [:]
        var nextKeeper = 0
    }

    /// What a look at the token finds.
    enum Condition {
        case fresh(ProviderToken)
        /// Still good, but to be renewed.
        case due(ProviderToken)
        /// None, or one that APNs takes no more.
        case useless
    }

    let key: SigningKey
    let teamID: String
    let keyID: String
    let clock: ProviderTokenClock
    let sharing: (any ProviderTokenSharing)?
    private let jitter: @Sendable () -> Double
    let logger: Logger?
    let state = Mutex(State())

    /// - Parameters:
    ///   - sharing: where other processes find the token; nil: it is for this one alone.
    ///   - jitter: from -1 to 1, so that several processes do not renew together.
    package init(
        key: SigningKey, teamID: String, keyID: String, clock: ProviderTokenClock,
        sharing: (any ProviderTokenSharing)? = nil,
        jitter: @escaping @Sendable () -> Double = { Double.random(in: -1...1) }, logger: Logger? = nil
    ) {
        self.key = key
        self.teamID = teamID
        self.keyID = keyID
        self.clock = clock
        self.sharing = sharing
        self.jitter = jitter
        self.logger = logger
    }

    /// For this process alone, by the clocks given.
    package convenience init(
        key: SigningKey, teamID: String, keyID: String, now: @escaping @Sendable () -> Int64,
        uptime: @escaping @Sendable () -> Duration = ProviderTokenClock.timeSinceBoot,
        jitter: @escaping @Sendable () -> Double = { Double.random(in: -1...1) }
    ) {
        self.init(
            key: key, teamID: teamID, keyID: keyID, clock: ProviderTokenClock(now: now, uptime: uptime), jitter: jitter)
    }

    /// The token to use now, signed if there is none or the last one is due. Throws `renewalPending` while other
    /// processes are asked for theirs: then the same question a moment later has an answer.
    package func authorization() throws(CredentialError) -> ProviderToken {
        let token = try state.withLock { (state) throws(CredentialError) -> ProviderToken? in
            switch try condition(state) {
            case .fresh(let token): return token
            case .due(let token): return sharing == nil ? try sign(&state) : token
            case .useless:
                guard sharing != nil, mayWait(&state) else { return try signAlone(&state) }
                return nil
            }
        }
        if let token { return token }
        askForRenewal()
        throw .renewalPending
    }

    /// As people know the key: `key ABC123DEFG of team DEF123GHIJ`.
    var name: String { "key \(keyID) of team \(teamID)" }

    /// Of the token in use; nil before the first.
    package var age: Duration? { state.withLock { $0.token == nil ? nil : clock.uptime() - $0.signedAt } }

    /// APNs answered ExpiredProviderToken to a request with this generation. Older generations are ignored, so that
    /// many answers to one token cause one renewal.
    package func markExpired(_ generation: Int) {
        state.withLock { $0.expiredGeneration = max($0.expiredGeneration, generation) }
        askForRenewal()
    }

    /// APNs answered TooManyProviderTokenUpdates: the token is kept in use, and none is signed for 20 minutes unless it
    /// gets too old meanwhile. True when that is news.
    @discardableResult
    package func holdRenewal() -> Bool {
        let isNew = state.withLock { state in
            let uptime = clock.uptime()
            let isNew = state.heldUntil <= uptime
            state.heldUntil = uptime + Self.renewalIntervalMin
            state.mustShareHold = sharing != nil
            return isNew
        }
        if isNew { askForRenewal() }
        return isNew
    }

    /// Throws when APNs calls a token expired that cannot be: another one would fare no better.
    func condition(_ state: State) throws(CredentialError) -> Condition {
        guard let token = state.token else { return .useless }
        let uptime = clock.uptime()
        let age = uptime - state.signedAt
        if state.expiredGeneration == token.generation {
            guard age >= Self.renewalIntervalMin || wallClockMoved(since: token, age: age) else {
                throw .clockWrong(tokenAgeSeconds: age.components.seconds)
            }
            return .useless
        }
        if age >= Self.ageMax { return .useless }
        return age >= state.renewalAge && uptime >= state.heldUntil ? .due(token) : .fresh(token)
    }

    func sign(_ state: inout State) throws(CredentialError) -> ProviderToken {
        let token = try ProviderToken(
            signedWith: key, teamID: teamID, keyID: keyID, at: clock.now(),
            generation: (state.token?.generation ?? 0) + 1)
        use(token, age: .zero, in: &state)
        return token
    }

    func use(_ token: ProviderToken, age: Duration, in state: inout State) {
        state.token = token
        state.signedAt = clock.uptime() - age
        state.renewalAge = Self.renewalAge + Self.renewalJitter * min(1, max(-1, jitter()))
        state.waitingSince = nil
        state.isAlone = false
    }

    private func wallClockMoved(since token: ProviderToken, age: Duration) -> Bool {
        let drift = .milliseconds(clock.now() - token.signedAt) - age
        return drift > Self.clockDriftMax || drift < .zero - Self.clockDriftMax
    }

    /// False once it has waited for long enough, or where nobody would bring a token.
    private func mayWait(_ state: inout State) -> Bool {
        guard !state.keepers.isEmpty else { return false }
        let uptime = clock.uptime()
        let since = state.waitingSince ?? uptime
        state.waitingSince = since
        return uptime - since < Self.patience
    }
}

/// The clocks a provider token is measured by.
package struct ProviderTokenClock: Sendable {
    /// The wall clock in milliseconds since 1970.
    let now: @Sendable () -> Int64
    /// Never jumps, and counts time spent suspended.
    let uptime: @Sendable () -> Duration
    /// Names the start that ``uptime`` counts from, the same for all processes of the machine; empty: not known.
    let bootID: String
    /// Returns early when the task is cancelled.
    let sleep: @Sendable (Duration) async -> Void

    package init(
        now: @escaping @Sendable () -> Int64, uptime: @escaping @Sendable () -> Duration = Self.timeSinceBoot,
        bootID: String = "", sleep: @escaping @Sendable (Duration) async -> Void = Self.sleep
    ) {
        self.now = now
        self.uptime = uptime
        self.bootID = bootID
        self.sleep = sleep
    }

    /// CLOCK_BOOTTIME: monotonic, and goes on while a virtual machine is suspended.
    package static let timeSinceBoot: @Sendable () -> Duration = {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    package static let sleep: @Sendable (Duration) async -> Void = { duration in
        // Ends early only when the task is cancelled, and whoever sleeps looks at that itself.
        try? await Task.sleep(for: duration)
    }
}
