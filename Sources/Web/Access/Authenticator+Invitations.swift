import Campaigns
import Model

/// Accepts invitations. Callers that guess are slowed down, as with tokens.
extension Authenticator {
    /// Returns the open invitation of a link. Does not use it up. Throws 404 if there is none.
    func invitation(_ secret: String, _ context: WebContext) async throws -> AccessToken {
        if let invitation = try await cases.access.invitation(secret, now: cases.now) { return invitation }
        try await refused(context)
        throw Self.noInvitation
    }

    /// Accepts the invitation of a link and starts a session. Throws 404 if there is no open invitation.
    func join(_ secret: String, _ context: WebContext) async throws -> ManageAccess.Joined {
        let joined = try await cases.access.join(secret, now: cases.now) {
            Caller(name: $0.name, role: $0.role, topic: $0.topic, proof: .session).actor
        }
        if let joined { return joined }
        try await refused(context)
        throw Self.noInvitation
    }

    private static var noInvitation: Problem {
        Problem(
            404, "not_found", "Invitation not found",
            "This link was used, has expired or was revoked: a link works once, within 24 hours. Ask an admin for another "
                + "one, or sign in with your token.")
    }
}
