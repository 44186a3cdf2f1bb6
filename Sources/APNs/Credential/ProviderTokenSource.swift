import Glibc
package import Logging
import Synchronization

/// Provides the one provider token of a key. Create one source per key and process.
///
/// APNs accepts a token for an hour and allows no new one within 20 minutes (`ProviderProtocol` section 3). The age is
/// measured by a monotonic clock from the moment of signing. The wall clock only sets `iat`. Any thread may ask for the
/// token, which is read from memory. If the token is shared with other processes, ``keepFresh(during:)`` fetches the
/// next one in time. If that fails until the token is no longer usable, a token is signed for this process alone.
package final class ProviderTokenSource: Sendable {
    /// The age at which a token is replaced, before jitter.
    package static let renewalAge: Duration = .seconds(45 * 60)
    package static let renewalJitter: Duration = .seconds(5 * 60)
    /// APNs responds with TooManyProviderTokenUpdates to new tokens within this time.
    package static let renewalIntervalMin: Duration = .seconds(20 * 60)
    /// The maximum age of a usable token, shortly before APNs rejects it.
    static let ageMax: Duration = .seconds(58 * 60)
    /// The tolerated drift of the wall clock. A greater drift since signing explains why APNs calls a young token
    /// expired.
    static let clockDriftMax: Duration = .seconds(60)
    /// The time for which a lane without a usable token waits for the shared one.
    static let patience: Duration = .seconds(10)
    /// The time until the next attempt to share a token, or to get the shared one.
    static let retryInterval: Duration = .seconds(30)

    struct State {
        var token: ProviderToken?
        /// By ``ProviderTokenClock/uptime``.
        var signedAt: Duration = .zero
        var renewalAge: Duration = .zero
        /// The generation that APNs called expired.
        var expiredGeneration = 0
        /// The time before which APNs rejects a new token, by ``ProviderTokenClock/uptime``.
        var heldUntil: Duration = .zero

        /// Whether the token was signed for this process alone while the shared record was unavailable.
        var isAlone = false
        /// Whether the shared record does not contain the current hold yet.
        var mustShareHold = false
        /// The start of the wait for a usable token.
        var waitingSince: Duration?
        var isRenewing = false
        /// Whether the last attempt to share failed. Only the first failure in a row is logged.
        var isFailing = false
        /// The streams that wake tasks for a renewal.
        var keepers: [Int: AsyncStream<Void>.Continuation] = [:]
        var nextKeeper = 0
    }

    /// The usability of the current token.
    enum Condition {
        case fresh(ProviderToken)
        /// The token is usable and should be renewed.
        case due(ProviderToken)
        /// There is no token, or APNs no longer accepts it.
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
    ///   - sharing: the shared record of the token. `nil` if the token is for this process alone.
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

    /// Creates a source for this process alone, with the given clocks.
    package convenience init(
        key: SigningKey, teamID: String, keyID: String, now: @escaping @Sendable () -> Int64,
        uptime: @escaping @Sendable () -> Duration = ProviderTokenClock.timeSinceBoot,
        jitter: @escaping @Sendable () -> Double = { Double.random(in: -1...1) }
    ) {
        self.init(
            key: key, teamID: teamID, keyID: keyID, clock: ProviderTokenClock(now: now, uptime: uptime), jitter: jitter)
    }

    /// Returns the current token. An unshared source first signs one if there is none or it is due. A shared source
    /// signs one for this process alone if it can wait no longer. Throws `renewalPending` while the shared token is
    /// being fetched. The caller should then retry shortly afterwards.
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

    /// The key's display name: `key ABC123DEFG of team DEF123GHIJ`.
    var name: String { "key \(keyID) of team \(teamID)" }

    /// The age of the token in use. `nil` before the first token.
    package var age: Duration? { state.withLock { $0.token == nil ? nil : clock.uptime() - $0.signedAt } }

    /// Records that APNs responded with ExpiredProviderToken to a request with this generation. Older generations are
    /// ignored, so that many responses to one token cause one renewal.
    package func markExpired(_ generation: Int) {
        state.withLock { $0.expiredGeneration = max($0.expiredGeneration, generation) }
        askForRenewal()
    }

    /// Records that APNs responded with TooManyProviderTokenUpdates. The token stays in use. No token is signed for 20
    /// minutes, unless the current one becomes too old. Returns false if a hold was already in force.
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

    /// Checks the token. Throws `clockWrong` if APNs calls a young token expired although the wall clock did not jump.
    /// A new token would not help then.
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

    /// Tells whether the caller may wait for a shared token. Returns false after ``patience``, or if no task fetches
    /// tokens.
    private func mayWait(_ state: inout State) -> Bool {
        guard !state.keepers.isEmpty else { return false }
        let uptime = clock.uptime()
        let since = state.waitingSince ?? uptime
        state.waitingSince = since
        return uptime - since < Self.patience
    }
}

/// The clocks that measure the age of a provider token.
package struct ProviderTokenClock: Sendable {
    /// The wall clock in milliseconds since 1970.
    let now: @Sendable () -> Int64
    /// A clock that never jumps, and that counts time spent suspended.
    let uptime: @Sendable () -> Duration
    /// The id of the boot that ``uptime`` counts from, the same for all processes of the machine. Empty if unknown.
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

    /// The time by CLOCK_BOOTTIME, which is monotonic and includes the time spent suspended.
    package static let timeSinceBoot: @Sendable () -> Duration = {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    package static let sleep: @Sendable (Duration) async -> Void = { duration in
        // The sleep ends early only if the task is cancelled, and the caller checks for that itself.
        try? await Task.sleep(for: duration)
    }
}
