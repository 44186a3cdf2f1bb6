import Logging
import Synchronization

/// Shares one token among all processes. A process that finds the token due signs the next one and records it, unless
/// another process was faster. The other processes read the record.
extension ProviderTokenSource {
    /// Fetches the shared token or signs the first one, then runs the work. While the work runs, renews the token
    /// before it expires and on request. Several tasks may call this at the same time.
    package func keepFresh<Value: Sendable>(during work: () async throws -> Value) async rethrows -> Value {
        guard sharing != nil else { return try await work() }
        await prepare()
        // The keeper is registered before the work begins, so that the work may wait for a renewal.
        let (asked, keeper) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.nextKeeper += 1
            state.keepers[state.nextKeeper] = keeper
            return state.nextKeeper
        }
        defer { state.withLock { _ = $0.keepers.removeValue(forKey: number) } }
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { for await _ in asked { await self.renewOnce() } }
            group.addTask {
                while !Task.isCancelled {
                    await self.clock.sleep(self.timeToRenewal)
                    keeper.yield()
                }
            }
            defer { group.cancelAll() }
            return try await work()
        }
    }

    /// Fetches or signs a token if there is no usable one. If sharing fails, the next caller signs one for this process
    /// alone.
    func prepare() async {
        guard needsToken else { return }
        await renew()
    }

    func askForRenewal() {
        for keeper in state.withLock({ Array($0.keepers.values) }) { keeper.yield() }
    }

    private var needsToken: Bool {
        state.withLock { state in
            // If the check throws, another token would not help.
            guard let condition = try? condition(state), case .useless = condition else { return false }
            return true
        }
    }

    /// The time until the next renewal or retry.
    private var timeToRenewal: Duration {
        state.withLock { state in
            let uptime = clock.uptime()
            let due = min(max(state.signedAt + state.renewalAge, state.heldUntil), state.signedAt + Self.ageMax)
            let isDue = state.token == nil || state.isAlone || state.mustShareHold || due <= uptime
            return isDue ? Self.retryInterval : due - uptime
        }
    }

    /// Renews the token if necessary, unless another task is renewing it.
    func renewOnce() async {
        let isFirst = state.withLock { state in
            defer { state.isRenewing = true }
            return !state.isRenewing
        }
        guard isFirst else { return }
        await renew()
        state.withLock { $0.isRenewing = false }
    }

    private func renew() async {
        guard let sharing else { return }
        do {
            if state.withLock({ $0.mustShareHold }) { try await shareHold(sharing) }
            guard let isAlone = state.withLock({ pendingRenewal($0) }) else { return }
            let shared = try await agree(sharing)
            state.withLock { state in
                state.isFailing = false
                // Keep the token in use until it is due, even if other processes use another one.
                if isAlone, pendingRenewal(state) == true { return state.isAlone = false }
                take(shared, into: &state)
            }
        } catch {
            // A cancelled renewal says nothing about the shared record.
            guard !Task.isCancelled, !(error is CancellationError) else { return }
            failed(error)
        }
    }

    /// Returns the kind of the pending renewal, or `nil` if there is none. False means that this process needs the next
    /// token. True means that only the shared record lacks this process's token.
    private func pendingRenewal(_ state: State) -> Bool? {
        guard let condition = try? condition(state) else { return nil }
        switch condition {
        case .useless, .due: return false
        case .fresh: return state.isAlone ? true : nil
        }
    }

    /// Returns the recorded token if it is good. Otherwise records a replacement and returns it.
    private func agree(_ sharing: any ProviderTokenSharing) async throws -> SharedProviderToken {
        var known = try await sharing.current()
        while true {
            if let known, isGood(known) { return known }
            let new = try next()
            let found = try await sharing.replace(known, with: new)
            if found == new { return found }
            // Another process was faster, or has extended the time in which no token may be signed.
            known = found
        }
    }

    /// Tells whether the token may stay in use. It must be young enough, or so recent that no process may sign another
    /// one.
    private func isGood(_ shared: SharedProviderToken) -> Bool {
        guard let age = age(of: shared), age < Self.ageMax else { return false }
        let (isOurs, isExpired, renewalAge) = state.withLock { state in
            let isOurs = state.token?.text == shared.authorization
            return (isOurs, isOurs && state.expiredGeneration == state.token?.generation, state.renewalAge)
        }
        if isExpired { return false }
        return age < (isOurs ? renewalAge : Self.renewalAge) || age < shared.held
    }

    /// Returns the token to record: this process's own if it is usable, or a new one.
    private func next() throws(CredentialError) -> SharedProviderToken {
        try state.withLock { (state) throws(CredentialError) in
            if state.isAlone, case .fresh(let token) = try condition(state) { return shared(token, state.signedAt) }
            let token = try ProviderToken(
                signedWith: key, teamID: teamID, keyID: keyID, at: clock.now(), generation: 0)
            return shared(token, clock.uptime())
        }
    }

    private func shared(_ token: ProviderToken, _ signedAt: Duration) -> SharedProviderToken {
        SharedProviderToken(
            authorization: token.text, signedAt: token.signedAt,
            heldUntil: token.signedAt + Int64(Self.renewalIntervalMin.milliseconds), bootID: clock.bootID,
            sinceBoot: .milliseconds(signedAt.milliseconds))
    }

    private func take(_ shared: SharedProviderToken, into state: inout State) {
        guard state.token?.text != shared.authorization else { return state.isAlone = false }
        let token = ProviderToken(
            authorization: Array(shared.authorization.utf8), signedAt: shared.signedAt,
            generation: (state.token?.generation ?? 0) + 1)
        use(token, age: age(of: shared) ?? .zero, in: &state)
    }

    /// Returns the token's age. The clock since boot measures it if the token was signed during the same boot,
    /// otherwise the wall clock. Returns `nil` for a token from the future: one of the clocks was wrong, and APNs would
    /// reject the token.
    private func age(of shared: SharedProviderToken) -> Duration? {
        let byWall: Duration = .milliseconds(clock.now() - shared.signedAt)
        guard byWall >= .zero - Self.clockDriftMax else { return nil }
        let byUptime = clock.uptime() - shared.sinceBoot
        let isSameBoot = !clock.bootID.isEmpty && clock.bootID == shared.bootID && byUptime >= .zero
        return isSameBoot ? byUptime : max(.zero, byWall)
    }

    private func shareHold(_ sharing: any ProviderTokenSharing) async throws {
        guard var known = try await sharing.current() else { return }
        while let age = age(of: known) {
            var held = known
            held.heldUntil = known.signedAt + Int64((age + Self.renewalIntervalMin).milliseconds)
            known = try await sharing.replace(known, with: held)
            if known == held { break }
        }
        state.withLock { $0.mustShareHold = false }
    }

    /// Handles a failure to share. A usable token stays in use. If there is none, the next caller signs one for this
    /// process alone.
    private func failed(_ error: any Error) {
        let isNews = state.withLock { state in
            if let condition = try? condition(state), case .useless = condition {
                state.waitingSince = .zero - Self.patience
            }
            defer { state.isFailing = true }
            return !state.isFailing
        }
        guard isNews else { return }
        logger?.warning(
            "provider token cannot be shared with other processes for now",
            metadata: ["credential": "\(name)", "error": "\(error)"])
    }

    /// Signs a token for this process alone and logs it: other processes may also sign one, and APNs may reject both.
    func signAlone(_ state: inout State) throws(CredentialError) -> ProviderToken {
        let token = try sign(&state)
        guard sharing != nil else { return token }
        state.isAlone = true
        logger?.warning(
            "provider token signed without the store; other processes use a different one",
            metadata: ["credential": "\(name)"])
        return token
    }
}
