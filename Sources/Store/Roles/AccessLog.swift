package import Model

/// Who may ask by way of the web: access tokens and the sessions of people at its pages. Secrets are known by their
/// SHA-256 in hex alone, and looked up by it: how long that takes says nothing about a secret.
///
/// Each method is one transaction. Looking one up is cheap: one row by index, whatever else the store holds.
package protocol AccessLog: Sendable {
    /// Puts a token on record, with an event. A name belongs to one token for ever, since `people` and the audit know a
    /// holder by it: ``StoreError/accessTokenExists(name:)`` if any token has or had the name, also a revoked one.
    ///
    /// - Parameter token: its id does not matter; the one it gets is in what is returned.
    func createAccessToken(_ token: AccessToken, secretHash: String, by actor: Actor) async throws -> AccessToken

    /// All that there were, revoked ones too, oldest first.
    func accessTokens() async throws -> [AccessToken]

    /// Nil: there is none. Whether it is good is ``AccessToken/isGood(at:)``.
    func accessToken(secretHash: String) async throws -> AccessToken?

    /// Whether a person made a token that was not revoked; one that has ended counts, so that nothing opens by itself. A
    /// token of a sign-in link (``AccessToken/linkPrefix``) does not count.
    func hasAccessTokens() async throws -> Bool

    /// Ends a token and its sessions, with an event; nothing changes for one that was revoked before.
    ///
    /// - Parameter text: an id, or the name of one that is not revoked; otherwise
    ///   ``StoreError/noSuchAccessToken(_:)``.
    func revokeAccessToken(_ text: String, by actor: Actor, now: Timestamp) async throws -> AccessToken

    /// The token was used at `now`.
    func markAccessTokenUsed(_ id: Int64, now: Timestamp) async throws

    /// Signs somebody in, with an event. False, and nothing is written, where the session's token is not good any more.
    func createSession(_ session: WebSession, secretHash: String, by actor: Actor) async throws -> Bool

    /// Nil: there is none. Whether it is good is ``WebSession/isGood(at:)``.
    func session(secretHash: String) async throws -> WebSession?

    /// It is good until `moment`, or until its end if that is earlier.
    func extendSession(secretHash: String, to moment: Timestamp) async throws

    /// Does nothing where there is none.
    func removeSession(secretHash: String) async throws

    /// Removes those that are over. Returns how many.
    func removeExpiredSessions(now: Timestamp) async throws -> Int
}
