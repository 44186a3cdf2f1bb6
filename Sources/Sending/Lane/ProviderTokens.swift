package import APNs
package import Logging
import Model
import Platform
package import Store
import Synchronization

/// The provider tokens of this process: one source for each key, whatever the number of apps, environments and reloads.
/// The store shares one token for each key among all processes.
package final class ProviderTokens: Sendable {
    private let log: any ProviderTokenLog
    private let clock: ProviderTokenClock
    private let logger: Logger
    private let sources = Mutex<[ProviderKey: ProviderTokenSource]>([:])

    package init(log: any ProviderTokenLog, clock: ProviderTokenClock, logger: Logger) {
        self.log = log
        self.clock = clock
        self.logger = logger
    }

    /// Creates the provider tokens with the clocks of this machine.
    ///
    /// - Parameter now: the wall clock in milliseconds since 1970.
    package convenience init(
        log: any ProviderTokenLog, now: @escaping @Sendable () -> Int64, logger: Logger
    ) {
        self.init(log: log, clock: ProviderTokenClock(now: now, bootID: BootClock.bootID), logger: logger)
    }

    /// Returns the source of a key. The same key has the same source, even if it was read from different files.
    package func source(of key: SigningKey, teamID: String, keyID: String) throws -> ProviderTokenSource {
        let name = ProviderKey(teamID: teamID, keyID: keyID, fingerprint: try key.fingerprint())
        return sources.withLock { sources in
            if let known = sources[name] { return known }
            let source = ProviderTokenSource(
                key: key, teamID: teamID, keyID: keyID, clock: clock,
                sharing: RecordedProviderToken(log: log, key: name), logger: logger)
            sources[name] = source
            return source
        }
    }

    /// Returns the age of each token. Keys that were never used have no age.
    package func ages() -> [(key: ProviderKey, age: Duration)] {
        sources.withLock { $0 }.compactMap { key, source in source.age.map { (key, $0) } }
            .sorted { ($0.key.keyID, $0.key.fingerprint) < ($1.key.keyID, $1.key.fingerprint) }
    }
}

/// The token of one key, as recorded in the store.
private struct RecordedProviderToken: ProviderTokenSharing {
    let log: any ProviderTokenLog
    let key: ProviderKey

    func current() async throws -> SharedProviderToken? {
        try await log.providerToken(of: key).map(SharedProviderToken.init)
    }

    func replace(_ known: SharedProviderToken?, with new: SharedProviderToken) async throws -> SharedProviderToken {
        SharedProviderToken(
            try await log.replaceProviderToken(
                known.map(StoredProviderToken.init), with: StoredProviderToken(new), of: key))
    }
}

extension SharedProviderToken {
    fileprivate init(_ stored: StoredProviderToken) {
        self.init(
            authorization: stored.token, signedAt: stored.signedAt.milliseconds,
            heldUntil: stored.heldUntil.milliseconds, bootID: stored.bootID, sinceBoot: stored.sinceBoot)
    }
}

extension StoredProviderToken {
    fileprivate init(_ shared: SharedProviderToken) {
        self.init(
            token: shared.authorization, signedAt: Timestamp(milliseconds: shared.signedAt),
            heldUntil: Timestamp(milliseconds: shared.heldUntil), bootID: shared.bootID, sinceBoot: shared.sinceBoot)
    }
}
