import Foundation
import HTTPTypes
import Hummingbird

/// The pages for signing in and out.
struct SignInPages: Sendable {
    /// The values of the form.
    struct Form: Sendable {
        /// The address on this server to continue with after signing in.
        var next: String
        /// The reason why the last attempt failed.
        var problem: String?
    }

    let authenticator: Authenticator

    var routes: [PageRoute] {
        [
            .get("/sign-in", nil, show), .post("/sign-in", nil, signIn), .post("/sign-out", nil, signOut),
        ]
    }

    /// Shows the form. If the address contains a one-time link's code, signs in and redirects to the first page.
    @Sendable private func show(_ request: PageRequest) async throws -> Response {
        guard let code = request.query("link"), request.request.method == .get else {
            return try form(request, next: request.query("next"))
        }
        guard
            let secret = try await authenticator.signIn(link: code, request.context)
        else {
            return try form(
                request, next: nil,
                problem: "this link was already used, or belongs to another server: a link works once; open a new one",
                .forbidden)
        }
        return PageRequest.seeOther("/", cookie: Authenticator.cookie(secret, for: request.request))
    }

    @Sendable private func signIn(_ request: PageRequest) async throws -> Response {
        let fields = try await request.form()
        let token = fields["token", default: ""].trimmingCharacters(in: .whitespacesAndNewlines)
        do {
            let secret = try await authenticator.signIn(token, request.context)
            return PageRequest.seeOther(
                Self.ownPage(fields["next"]), cookie: Authenticator.cookie(secret, for: request.request))
        } catch let problem as Problem {
            return try form(
                request, next: fields["next"], problem: problem.detail, .init(code: problem.status),
                retryAfter: problem.retryAfter)
        }
    }

    @Sendable private func signOut(_ request: PageRequest) async throws -> Response {
        if let secret = Authenticator.cookie(of: request.request) { try await authenticator.signOut(secret) }
        return PageRequest.seeOther("/sign-in", cookie: Authenticator.cookie(nil, for: request.request))
    }

    private func form(
        _ request: PageRequest, next: String?, problem: String? = nil, _ status: HTTPResponse.Status = .ok,
        retryAfter: Int? = nil
    ) throws -> Response {
        try request.page(
            .signIn, title: "Sign in", Form(next: Self.ownPage(next), problem: problem), status: status,
            headers: retryAfter.map { [.retryAfter: "\($0)"] } ?? [:])
    }

    /// Returns the address if it belongs to this server, or the first page otherwise.
    private static func ownPage(_ path: String?) -> String { PageRequest.ownAddress(path ?? "") ?? "/" }
}
