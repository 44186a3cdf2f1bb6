package import Model

/// The provider tokens of all processes of a store: one for each key, signed by one of them and used by all, for APNs
/// wants no new one within 20 minutes (`ProviderProtocol` section 3).
package protocol ProviderTokenLog: Sendable {
    /// Nil: none is on record for this key.
    func providerToken(of key: ProviderKey) async throws -> StoredProviderToken?

    /// Puts `new` on record, unless what is there is not `known` any more: then another process was faster. Returns what
    /// is on record afterwards. Tokens of any key that are too old to be used are forgotten.
    ///
    /// - Parameter known: as read before; nil: there was none.
    func replaceProviderToken(
        _ known: StoredProviderToken?, with new: StoredProviderToken, of key: ProviderKey
    ) async throws -> StoredProviderToken
}

/// A signing key. Its public half is part of it, so that a token of a key that was replaced in its file is never used.
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

/// A provider token on record.
package struct StoredProviderToken: Hashable, Sendable {
    /// The value of `authorization`: a secret for an hour.
    package var token: String
    package var signedAt: Timestamp
    /// By ``signedAt``'s clock; before it nobody signs another one.
    package var heldUntil: Timestamp
    /// The machine's start it was signed in, and how long after it: an age that no setting of a clock changes.
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
