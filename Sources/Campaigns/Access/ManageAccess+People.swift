package import Model
import Platform
import Store

/// Invites people to the pages, and changes what they may do.
extension ManageAccess {
    /// The time for which an invitation may be accepted.
    package static let invitationLifetime: Duration = .seconds(24 * 3600)

    /// The result of an accepted invitation. Both secrets are shown or set now, and stored only as hashes.
    package struct Joined: Sendable {
        package var token: AccessToken
        /// The secret of the token, with which the person signs in elsewhere.
        package var secret: String
        /// The secret of the session that has begun; `nil` if none could begin.
        package var session: String?
    }

    /// Invites a person, and returns the secret of the invitation. The store keeps only a hash of it, so the caller
    /// must show the secret now. A second invitation of the same name replaces the first one, unless it was accepted.
    ///
    /// - Parameter topic: the topic of the only app that the person may see; `nil` for all apps.
    package func invite(
        name: String, role: AccessRole, topic: String?, by actor: Actor, now: Timestamp
    ) async throws -> (invitation: AccessToken, secret: String) {
        guard role != .registrar else {
            throw Failure(
                .invalidData, "a registrar is a program and cannot sign in; create a token for the program instead")
        }
        try await requireUsable(name)
        let secret = makeSecret()
        let invitation = AccessToken(
            id: 0, name: name, role: role, topic: topic, createdAt: now, createdBy: actor.name,
            expiresAt: now + Self.invitationLifetime, revokedAt: nil, lastUsedAt: nil, isInvitation: true)
        return (try await store.invite(invitation, secretHash: Self.hash(secret), by: actor), secret)
    }

    /// Returns the open invitation with this secret; `nil` if it was accepted or revoked, has expired, or never
    /// existed.
    package func invitation(_ secret: String, now: Timestamp) async throws -> AccessToken? {
        guard AccessSecret.isPlausible(secret) else { return nil }
        let found = try await store.accessToken(secretHash: Self.hash(secret))
        return found.flatMap { $0.isOpenInvitation(at: now) ? $0 : nil }
    }

    /// Accepts an invitation: the person gets a token, and a session begins. Returns `nil` if the invitation is not
    /// open. The invitation is used up when this returns, so a session that cannot begin is no error: the person
    /// signs in with the token.
    ///
    /// - Parameter actor: the person, given the record of the invitation.
    package func join(
        _ secret: String, now: Timestamp, by actor: (AccessToken) -> Actor
    ) async throws -> Joined? {
        guard let invitation = try await invitation(secret, now: now) else { return nil }
        let (actor, own) = (actor(invitation), makeSecret())
        let accepted = try await store.acceptInvitation(
            secretHash: Self.hash(secret), newHash: Self.hash(own), by: actor, now: now)
        guard let accepted else { return nil }
        return Joined(token: accepted, secret: own, session: try? await signIn(accepted, by: actor, now: now))
    }

    /// Changes the role and the app of a token. The change takes effect immediately, also for its sessions.
    ///
    /// - Parameter text: the token's id or name.
    package func change(
        _ text: String, role: AccessRole, topic: String?, by actor: Actor, now: Timestamp
    ) async throws -> AccessToken {
        defer { recent.forgetAll() }
        return try await store.changeAccessToken(text, role: role, topic: topic, by: actor, now: now)
    }
}
