import Campaigns
import Hummingbird
import Model

/// The operations for access tokens, which an admin creates, lists and revokes.
struct TokenOperations: Sendable {
    /// A token to create.
    struct Request: Codable, Sendable {
        /// The owner or the purpose of the token. The audit log shows this name as the actor.
        var name: String
        var role: String
        /// The topic of the only app for which the token is valid.
        var topic: String?
        /// A duration such as `90d`. By default, the token is valid until it is revoked.
        var expires: String?
    }

    let cases: UseCases

    private static let token = Operation.Parameter.path("token", "The number of a token, or its name.")

    var all: [Operation] {
        [
            Operation(
                method: .get, path: "/tokens", id: "listTokens", subject: "Tokens",
                about: "All access tokens, including expired and revoked ones, oldest first. Secrets are not stored.",
                permission: .tokens,
                parameters: [.format],
                answers: [.init(.ok, "The tokens.", .json(ListPage<AccessTokenResult>.self), orTable: true)],
                problems: [.unprocessableContent], handle: list),
            Operation(
                method: .post, path: "/tokens", id: "createToken", subject: "Tokens",
                about: "Creates an access token. Only this response contains its `secret`.", permission: .tokens,
                body: .json(Request.self),
                answers: [.init(.created, "The token, with its secret.", .json(AccessTokenResult.self))],
                problems: [.conflict, .contentTooLarge, .unprocessableContent, .serviceUnavailable], handle: create),
            Operation(
                method: .delete, path: "/tokens/{token}", id: "revokeToken", subject: "Tokens",
                about: "Revokes a token, and the sessions that were opened with it.", permission: .tokens,
                parameters: [Self.token], answers: [.init(.ok, "The token.", .json(AccessTokenResult.self))],
                problems: [.notFound, .conflict, .serviceUnavailable], handle: revoke),
        ]
    }

    @Sendable private func list(_ request: APIRequest) async throws -> Response {
        try request.caller.requireAllApps(for: "tokens")
        return try request.list(try await cases.access.list().map { AccessTokenResult($0, now: cases.now) }, next: nil)
    }

    @Sendable private func create(_ request: APIRequest) async throws -> Response {
        try request.caller.requireAllApps(for: "tokens")
        let made = try await Self.create(request.body(Request.self), cases, by: request.caller.actor)
        return try .json(made, .created)
    }

    @Sendable private func revoke(_ request: APIRequest) async throws -> Response {
        try request.caller.requireAllApps(for: "tokens")
        let token = try await cases.access.revoke(
            request.path("token"), keepsAdmin: true, by: request.caller.actor, now: cases.now)
        return try .json(AccessTokenResult(token, now: cases.now))
    }

    /// Creates a token, for the API and for the page.
    static func create(_ request: Request, _ cases: UseCases, by actor: Actor) async throws -> AccessTokenResult {
        guard let role = AccessRole(rawValue: request.role) else {
            let roles = AccessRole.allCases.map(\.rawValue).joined(separator: ", ")
            throw Problem.invalid([.init(pointer: "/role", detail: "\"role\" must be one of \(roles)")])
        }
        let expires = try request.expires.map { text in
            try WrittenDuration.parse(text).orThrow(
                Problem.invalid([.init(pointer: "/expires", detail: "\"expires\" must be a duration, such as 90d")]))
        }
        let now = cases.now
        let made = try await cases.access.create(
            name: request.name, role: role, topic: request.topic, expiresIn: expires, by: actor, now: now)
        return AccessTokenResult(made.token, secret: made.secret, now: now)
    }
}
