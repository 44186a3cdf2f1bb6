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
        /// The reason why the person must sign in again.
        var notice: String?
        /// The form that was sent without a session.
        var kept: KeptForm?
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
            return try Self.form(request, next: request.query("next"))
        }
        guard
            let secret = try await authenticator.signIn(link: code, request.context)
        else {
            return try Self.form(
                request, next: nil,
                problem: "this link was already used, or belongs to another server: a link works once; open a new one",
                .forbidden)
        }
        return PageRequest.seeOther("/", cookie: Authenticator.cookie(secret, for: request.request))
    }

    @Sendable private func signIn(_ request: PageRequest) async throws -> Response {
        let fields = try await request.form()
        let token = fields["token", default: ""].trimmingCharacters(in: .whitespacesAndNewlines)
        let kept = fields[KeptForm.addressField].flatMap { KeptForm(path: $0, fields) }
        do {
            let secret = try await authenticator.signIn(token, request.context)
            let cookie = Authenticator.cookie(secret, for: request.request)
            if let kept { return PageRequest.seeAgain(kept.address, cookie: cookie) }
            return PageRequest.seeOther(Self.ownPage(fields["next"]), cookie: cookie)
        } catch let problem as Problem {
            return try Self.form(
                request, next: fields["next"], kept: kept, problem: problem.detail, .init(code: problem.status),
                retryAfter: problem.retryAfter)
        }
    }

    /// Asks a person without a session to sign in. A form with a text is kept in the page; any other form cannot be
    /// repeated from its address, so the sign-in leads to the page that sent it.
    static func signInFirst(_ request: PageRequest) async throws -> Response {
        guard request.request.method == .post else {
            return PageRequest.seeOther("/sign-in?next=\(request.request.uri.string.inAddress)")
        }
        // A form that is too large is not kept, like one with too much text.
        let fields = (try? await request.form()) ?? [:]
        // A script shows the reason itself, and keeps the text.
        let isScript = fields["part"] != nil
        let kept = isScript ? nil : KeptForm(path: request.request.uri.path, fields)
        guard isScript || kept != nil else {
            return PageRequest.seeOther("/sign-in?next=\((request.referringPage ?? "/").inAddress)")
        }
        return try form(request, next: request.referringPage, kept: kept, .unauthorized)
    }

    @Sendable private func signOut(_ request: PageRequest) async throws -> Response {
        if let secret = Authenticator.cookie(of: request.request) { try await authenticator.signOut(secret) }
        return PageRequest.seeOther("/sign-in", cookie: Authenticator.cookie(nil, for: request.request))
    }

    private static func form(
        _ request: PageRequest, next: String?, kept: KeptForm? = nil, problem: String? = nil,
        _ status: HTTPResponse.Status = .ok, retryAfter: Int? = nil
    ) throws -> Response {
        let hadSession = request.visitor == nil && Authenticator.cookie(of: request.request) != nil
        let notice =
            kept != nil
            ? "Your session has ended. What you typed is kept: sign in, and it is shown again."
            : hadSession ? "Your session has ended. Sign in to continue." : nil
        return try request.page(
            .signIn, title: "Sign in",
            Form(next: ownPage(next), problem: problem, notice: problem == nil ? notice : nil, kept: kept),
            status: status, headers: retryAfter.map { [.retryAfter: "\($0)"] } ?? [:])
    }

    /// Returns the address if it belongs to this server, or the first page otherwise.
    private static func ownPage(_ path: String?) -> String { PageRequest.ownAddress(path ?? "") ?? "/" }
}
