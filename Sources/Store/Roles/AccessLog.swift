package import Model

/// The access tokens and the web sessions that authenticate callers of the web interface. The store knows a secret only
/// by its SHA-256 in hex and looks it up by this hash. So the time of a look-up reveals nothing about a secret.
///
/// Each method is one transaction. A look-up is cheap: it reads one row by index, whatever else the store holds.
package protocol AccessLog: Sendable {
    /// Records a token, with an event. A name belongs to one token permanently, because `people` and the audit log
    /// identify a holder by it. Throws ``StoreError/accessTokenExists(name:)`` if any token has or had the name,
    /// including a revoked one.
    ///
    /// - Parameter token: its id is ignored. The returned token has the id that the store assigned.
    func createAccessToken(_ token: AccessToken, secretHash: String, by actor: Actor) async throws -> AccessToken

    /// Returns all tokens, including revoked ones, oldest first.
    func accessTokens() async throws -> [AccessToken]

    /// Returns `nil` if there is no such token. ``AccessToken/isGood(at:)`` says whether a token is valid.
    func accessToken(secretHash: String) async throws -> AccessToken?

    /// Returns whether a person created a token that was not revoked. An expired token counts, so that the web
    /// interface never becomes open to all because tokens expire. A token of a sign-in link
    /// (``AccessToken/linkPrefix``) does not count.
    func hasAccessTokens() async throws -> Bool

    /// Revokes a token or an invitation and ends its sessions, with an event. Nothing changes for a token that was
    /// revoked before.
    ///
    /// - Parameters:
    ///   - text: an id, or the name of a token that is not revoked. Otherwise the method throws
    ///     ``StoreError/noSuchAccessToken(_:)``.
    ///   - keepsAdmin: whether to throw ``StoreError/lastAdmin(name:)`` instead of revoking the last valid token of an
    ///     admin of all apps. Tokens of sign-in links do not count as such a token.
    func revokeAccessToken(_ text: String, keepsAdmin: Bool, by actor: Actor, now: Timestamp) async throws
        -> AccessToken

    /// Changes the role and the app of a valid token and of its sessions, with an event.
    ///
    /// Throws ``StoreError/noSuchAccessToken(_:)`` for any other token, and ``StoreError/lastAdmin(name:)`` if no valid
    /// token of an admin of all apps would be left.
    func changeAccessToken(
        _ text: String, role: AccessRole, topic: String?, by actor: Actor, now: Timestamp
    ) async throws -> AccessToken

    /// Records an invitation, with an event. It replaces an earlier invitation of the same name that no person has
    /// accepted. Throws ``StoreError/accessTokenExists(name:)`` if a token has or had the name.
    ///
    /// - Parameter invitation: see ``AccessToken/isInvitation``. Its id is ignored.
    func invite(_ invitation: AccessToken, secretHash: String, by actor: Actor) async throws -> AccessToken

    /// Makes an open invitation a token that does not expire, with an event. Returns `nil`, and writes nothing, if
    /// there is no open invitation with this secret, such as after it was accepted.
    ///
    /// - Parameter newHash: the hash of the token's secret, which replaces that of the invitation.
    func acceptInvitation(
        secretHash: String, newHash: String, by actor: Actor, now: Timestamp
    ) async throws -> AccessToken?

    /// Records that the token was used at `now`.
    func markAccessTokenUsed(_ id: Int64, now: Timestamp) async throws

    /// Creates a session, with an event. Returns `false`, and writes nothing, if the session's token is no longer
    /// valid.
    func createSession(_ session: WebSession, secretHash: String, by actor: Actor) async throws -> Bool

    /// Returns `nil` if there is no such session. ``WebSession/isGood(at:)`` says whether a session is valid.
    func session(secretHash: String) async throws -> WebSession?

    /// Extends a session until `moment`, or until its end if that is earlier.
    func extendSession(secretHash: String, to moment: Timestamp) async throws

    /// Removes a session. Does nothing if there is none.
    func removeSession(secretHash: String) async throws

    /// Removes the sessions that are over. Returns how many.
    func removeExpiredSessions(now: Timestamp) async throws -> Int
}
