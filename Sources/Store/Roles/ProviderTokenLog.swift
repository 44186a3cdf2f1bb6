package import Model

/// The provider tokens of all processes of a store. Each key has one token, which one process signs and all use,
/// because APNs allows no new one within 20 minutes (`ProviderProtocol` section 3).
package protocol ProviderTokenLog: Sendable {
    /// Returns `nil` if no token is recorded for this key.
    func providerToken(of key: ProviderKey) async throws -> StoredProviderToken?

    /// Records `new`, unless the recorded token is no longer `known`: then another process was faster. Returns the
    /// token that is recorded afterwards. Tokens of any key that are too old to be used are removed.
    ///
    /// - Parameter known: the token as read before; `nil` if there was none.
    func replaceProviderToken(
        _ known: StoredProviderToken?, with new: StoredProviderToken, of key: ProviderKey
    ) async throws -> StoredProviderToken
}

/// The identity of a signing key. It includes a hash of the public key, so that a token is never used after the key
/// was replaced in its file.
package struct ProviderKey: Hashable, Sendable {
    package var teamID: String
    package var keyID: String
    /// SHA-256 of the public key, in hex.
    package var fingerprint: String

    package init(teamID: String, keyID: String, fingerprint: String) {
        self.teamID = teamID
        self.keyID = keyID
        self.fingerprint = fingerprint
    }
}

/// A recorded provider token.
package struct StoredProviderToken: Hashable, Sendable {
    /// The value of the `authorization` header. APNs accepts it for an hour, so it must stay secret.
    package var token: String
    package var signedAt: Timestamp
    /// The time, by ``signedAt``'s clock, before which no process signs another token.
    package var heldUntil: Timestamp
    /// The boot of the machine in which the token was signed, and the time since that boot. No change of the clock
    /// affects this age.
    package var bootID: String
    package var sinceBoot: Duration

    package init(
        token: String, signedAt: Timestamp, heldUntil: Timestamp, bootID: String, sinceBoot: Duration
    ) {
        self.token = token
        self.signedAt = signedAt
        self.heldUntil = heldUntil
        self.bootID = bootID
        self.sinceBoot = sinceBoot
    }
}
