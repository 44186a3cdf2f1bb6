import Campaigns
import Hummingbird
import Model

/// The pages of an invitation. Opening the link changes nothing, because chat programs open links for a preview.
struct JoinPages: Sendable {
    struct Page: Sendable {
        var name: String
        var role: String
        var about: String
        /// The topic of the only app. `nil` for all apps.
        var topic: String?
        /// The address that accepts the invitation. `nil` once it is accepted.
        var joinAddress: String?
        /// The secret of the person's token. It is shown only once.
        var secret: String?
    }

    let authenticator: Authenticator

    var routes: [PageRoute] { [.get("/join/{secret}", nil, show), .post("/join/{secret}", nil, join)] }

    @Sendable private func show(_ request: PageRequest) async throws -> Response {
        let secret = request.path("secret")
        let invitation = try await authenticator.invitation(secret, request.context)
        var page = Page(invitation)
        page.joinAddress = "/join/\(secret.inAddress)"
        return try request.page(.join, title: "Join", page)
    }

    /// Accepts the invitation. The response is not a redirect, because only this response contains the secret.
    @Sendable private func join(_ request: PageRequest) async throws -> Response {
        let joined = try await authenticator.join(request.path("secret"), request.context)
        var page = Page(joined.token)
        page.secret = joined.secret
        var response = try request.page(.join, title: "Welcome", page)
        if let session = joined.session { response.setCookie(Authenticator.cookie(session, for: request.request)) }
        return response
    }
}

extension JoinPages.Page {
    fileprivate init(_ token: AccessToken) {
        self.init(name: token.name, role: token.role.rawValue, about: token.role.about, topic: token.topic)
    }
}
