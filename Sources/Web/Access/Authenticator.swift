import Campaigns
import Foundation
import HTTPTypes
import Hummingbird
import Model
import Synchronization

/// Finds out who asks: programs by an access token in the request, people by a session's cookie or by what a trusted
/// proxy says. A cookie is no way into the API, and a token none into the pages but by signing in.
struct Authenticator: Sendable {
    let link: OneTimeLink
    private let cases: UseCases
    private let limiter: AttemptLimiter

    init(_ cases: UseCases, link: OneTimeLink) {
        self.cases = cases
        self.link = link
        limiter = AttemptLimiter { cases.uptime }
    }

    /// Whoever asks the API. Throws 401 without a good token, 429 after too many wrong ones.
    func program(_ request: Request, _ context: WebContext) async throws -> Caller {
        guard let secret = Self.bearer(request) else {
            throw Problem.unauthorized(
                "send an access token: `Authorization: Bearer fanfare_...`; `fanfare tokens create` makes one")
        }
        let token = try await token(secret, from: context.clientAddress)
        return Caller(name: token.name, role: token.role, topic: token.topic, proof: .token)
    }

    /// Whoever looks at the pages; nil: nobody is signed in.
    func person(_ request: Request, _ context: WebContext) async throws -> Caller? {
        try await person(request, context, isUse: true)
    }

    /// Whether whoever began something long is let in as before: nobody ended their session, and it is not over by itself. A
    /// page that stays open does not keep it alive.
    func isStill(_ caller: Caller, _ request: Request, _ context: WebContext) async throws -> Bool {
        try await person(request, context, isUse: false) == caller
    }

    private func person(_ request: Request, _ context: WebContext, isUse: Bool) async throws -> Caller? {
        if let caller = try proxied(request, context) { return caller }
        guard let secret = Self.cookie(of: request) else { return nil }
        return try await cases.access.session(secret, isUse: isUse, now: cases.now).map {
            Caller(name: $0.name, role: $0.role, topic: $0.topic, proof: .session)
        }
    }

    /// The token of this secret, slowed down for who guesses.
    func token(_ secret: String, from address: String) async throws -> AccessToken {
        if let token = try await cases.access.authenticate(secret, now: cases.now) { return token }
        // Only who is wrong waits: behind a proxy everybody comes from one address.
        try limiter.check(address)
        limiter.failed(address)
        throw Problem.unauthorized(
            "this access token is unknown, has ended or was revoked; `fanfare tokens list` shows which are good")
    }

    /// Begins a session with a token's secret. Returns the cookie's value.
    func signIn(_ secret: String, from address: String) async throws -> String {
        let token = try await token(secret, from: address)
        guard token.role != .registrar else {
            throw Problem.forbidden("\(token.name) is a registrar's token: it registers devices, and sees no page")
        }
        let caller = Caller(name: token.name, role: token.role, topic: token.topic, proof: .session)
        return try await cases.access.signIn(token, by: caller.actor, now: cases.now)
    }

    /// The same with the link that a terminal showed; nil: it was used, or is another's.
    func signIn(link code: String, from address: String) async throws -> String? {
        let session = try await link.spend(code) {
            let caller = Caller(name: "terminal", role: .admin, proof: .session)
            return try await cases.access.signIn(as: caller.name, role: caller.role, by: caller.actor, now: cases.now)
        }
        guard let session else {
            try limiter.check(address)
            limiter.failed(address)
            return nil
        }
        return session
    }

    func signOut(_ secret: String) async throws {
        try await cases.access.signOut(secret)
    }

    /// A header counts from named addresses alone: anybody can send one.
    private func proxied(_ request: Request, _ context: WebContext) throws -> Caller? {
        guard let proxy = cases.configuration().http.proxy, proxy.addresses.contains(context.clientAddress),
            let user = request.header(proxy.userHeader), !user.isEmpty
        else { return nil }
        let role = try proxy.roleHeader.flatMap { request.header($0) }.map { word in
            try AccessRole(rawValue: word).orThrow(
                Problem.forbidden("the proxy says that \(user) is \"\(word)\", which is no role of ours"))
        }
        return Caller(name: user, role: role ?? proxy.role, topic: nil, proof: .proxy)
    }

    private static func bearer(_ request: Request) -> String? {
        guard let value = request.headers[.authorization] else { return nil }
        let words = value.split(separator: " ", maxSplits: 1)
        guard words.count == 2, words[0].lowercased() == "bearer" else { return nil }
        return words[1].trimmingCharacters(in: .whitespaces)
    }
}

extension Authenticator {
    /// Browsers take a cookie of the first name only with TLS, for this host and every path.
    private static let names = (secure: "__Host-fanfare", plain: "fanfare")
    /// As long as a session that is used can last; when it really ends the server knows.
    private static let cookieSeconds = 30 * 86_400

    static func cookie(of request: Request) -> String? {
        let cookies = request.cookies
        return (cookies[names.secure] ?? cookies[names.plain])?.value
    }

    /// - Parameter secret: nil ends it.
    static func cookie(_ secret: String?, for request: Request) -> Cookie {
        let isSecure = request.header("X-Forwarded-Proto")?.lowercased() == "https"
        return Cookie(
            name: isSecure ? names.secure : names.plain, value: secret ?? "",
            maxAge: secret == nil ? 0 : cookieSeconds, path: "/", secure: isSecure, httpOnly: true,
            sameSite: .lax)
    }
}

/// A way in for whoever started the server from a terminal: good once.
package final class OneTimeLink: Sendable {
    private let code: Mutex<String?>

    /// - Parameter code: nil: there is none.
    package init(_ code: String?) {
        self.code = Mutex(code)
    }

    /// What the right one is good for, once; nil for any other. Where that fails, as with a store that is busy, it stays
    /// good; meanwhile it is nobody else's.
    func spend<Value: Sendable>(_ given: String, _ body: () async throws -> Value) async throws -> Value? {
        guard take(given) else { return nil }
        do {
            return try await body()
        } catch {
            code.withLock { $0 = given }
            throw error
        }
    }

    private func take(_ given: String) -> Bool {
        code.withLock { code in
            guard let known = code, known.utf8.elementsEqual(given.utf8) else { return false }
            code = nil
            return true
        }
    }
}
