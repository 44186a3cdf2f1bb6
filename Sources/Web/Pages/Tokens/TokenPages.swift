import Campaigns
import Hummingbird
import Model

/// The page of access tokens, for an admin.
struct TokenPages: Sendable {
    struct Page: Sendable {
        struct Token: Sendable {
            var name: String
            var role: String
            var topic: String
            var state: String
            var colour: String
            var made: PageHTML
            var madeBy: String
            var ends: PageHTML
            var used: PageHTML
            /// The address that revokes the token. `nil` if the token is no longer valid.
            var revokeAddress: String?
        }

        struct Role: Sendable {
            var word: String
            var about: String
            var isChosen: Bool
        }

        /// The secret of the token that was just created. It is shown only once.
        var secret: String?
        var problem: String?
        /// The name as typed.
        var name: String
        var topic: String
        var expires: String
        var roles: [Role]
        var tokens: [Token]
        var isEmpty: Bool
    }

    let cases: UseCases

    var routes: [PageRoute] {
        [
            .get("/tokens", .tokens, list), .post("/tokens", .tokens, create),
            .post("/tokens/{token}/revoke", .tokens, revoke),
        ]
    }

    @Sendable private func list(_ request: PageRequest) async throws -> Response {
        try request.caller.requireAllApps(for: "tokens")
        if request.query("format") == "csv" { return .table(try ListTable.text(try await tokens())) }
        return try await page(request)
    }

    /// Creates a token. The response is not a redirect, because only this response contains the secret.
    @Sendable private func create(_ request: PageRequest) async throws -> Response {
        try request.caller.requireAllApps(for: "tokens")
        let form = try await request.form()
        let given = { (name: String) in form[name].flatMap { $0.isEmpty ? nil : $0 } }
        do {
            let made = try await TokenOperations.create(
                TokenOperations.Request(
                    name: form["name", default: ""], role: form["role", default: ""], topic: given("topic"),
                    expires: given("expires")), cases, by: request.caller.actor)
            return try await page(request, secret: made.secret)
        } catch {
            let problem = Problem(error)
            guard problem.status < 500 || problem.status == 503 else { throw error }
            return try await page(request, form: form, problem: problem)
        }
    }

    @Sendable private func revoke(_ request: PageRequest) async throws -> Response {
        try request.caller.requireAllApps(for: "tokens")
        _ = try await cases.access.revoke(request.path("token"), by: request.caller.actor, now: cases.now)
        return PageRequest.seeOther("/tokens")
    }

    private func tokens() async throws -> [AccessTokenResult] {
        try await cases.access.list().map { AccessTokenResult($0, now: cases.now) }
    }

    private func page(
        _ request: PageRequest, secret: String? = nil, form: [String: String] = [:], problem: Problem? = nil
    ) async throws -> Response {
        let tokens = try await tokens()
        let page = Page(
            secret: secret, problem: problem?.detail, name: form["name", default: ""],
            topic: form["topic", default: ""], expires: form["expires", default: "90d"],
            roles: AccessRole.allCases.map {
                Page.Role(word: $0.rawValue, about: $0.about, isChosen: $0.rawValue == form["role"])
            },
            // The newest token comes first, because an admin usually looks for it.
            tokens: tokens.reversed().map(Page.Token.init), isEmpty: tokens.isEmpty)
        return try request.page(.tokens, title: "Tokens", page, status: .init(code: problem?.status ?? 200))
    }
}

extension TokenPages.Page.Token {
    fileprivate init(_ token: AccessTokenResult) {
        name = token.name
        role = token.role
        topic = token.topic ?? "all apps"
        state = token.state
        colour = StateColour.of(token.state)
        (made, madeBy) = (PageHTML(time: token.createdAt), token.createdBy)
        ends = PageHTML(time: token.revokedAt ?? token.expiresAt ?? "when revoked")
        used = PageHTML(time: token.lastUsedAt ?? "never")
        revokeAddress = token.state == "good" ? "/tokens/\(token.id)/revoke" : nil
    }
}

extension AccessRole {
    /// The description of a role, for the form and for the guide's reference.
    package var about: String {
        switch self {
        case .viewer: "reads everything, changes nothing"
        case .author: "writes campaigns and segments, plans them, tests them on one device, asks for approval"
        case .sender: "asks for approval, starts, pauses, resumes and cancels runs"
        case .approver: "approves plans, stops runs"
        case .admin: "everything"
        case .registrar: "the app's backend: registers and removes devices, sees nothing else"
        }
    }
}
