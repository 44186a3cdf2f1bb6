import Campaigns
import Foundation
import HTTPTypes
import Hummingbird
import Logging
import Model
import Synchronization

/// Finds out who asks: programs by an access token in the request, people by a session's cookie or by what a trusted
/// proxy says. A cookie is no way into the API, and a token none into the pages but by signing in.
struct Authenticator: Sendable {
    let link: OneTimeLink
    private let cases: UseCases
    private let limiter: AttemptLimiter
    private let refusals: RefusalReports

    init(_ cases: UseCases, link: OneTimeLink) {
        self.cases = cases
        self.link = link
        limiter = AttemptLimiter { cases.uptime }
        refusals = RefusalReports { cases.uptime }
    }

    /// Whoever asks the API. Throws 401 without a good token, 429 after too many wrong ones.
    func program(_ request: Request, _ context: WebContext) async throws -> Caller {
        guard let secret = Self.bearer(request) else {
            throw Problem.unauthorized(
                "send an access token: `Authorization: Bearer fanfare_...`; `fanfare tokens create` makes one")
        }
        let token = try await token(secret, context)
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
    func token(_ secret: String, _ context: WebContext) async throws -> AccessToken {
        if let token = try await cases.access.authenticate(secret, now: cases.now) { return token }
        // Only who is wrong waits: behind a proxy everybody comes from one address.
        try await refused(context)
        throw Problem.unauthorized(
            "this access token is unknown, has ended or was revoked; `fanfare tokens list` shows which are good")
    }

    /// Begins a session with a token's secret. Returns the cookie's value.
    func signIn(_ secret: String, _ context: WebContext) async throws -> String {
        let token = try await token(secret, context)
        guard token.role != .registrar else {
            throw Problem.forbidden("\(token.name) is a registrar's token: it registers devices, and sees no page")
        }
        let caller = Caller(name: token.name, role: token.role, topic: token.topic, proof: .session)
        return try await cases.access.signIn(token, by: caller.actor, now: cases.now)
    }

    /// The same with the link that a terminal showed; nil: it was used, has ended, or is another's. The session belongs to
    /// a token of its own, which `fanfare tokens` lists and revokes.
    func signIn(link code: String, _ context: WebContext) async throws -> String? {
        let session = try await link.spend(code) {
            let token = try await cases.access.makeLinkToken(now: cases.now)
            let caller = Caller(name: token.name, role: token.role, proof: .session)
            return try await cases.access.signIn(token, by: caller.actor, now: cases.now)
        }
        guard let session else {
            try await refused(context)
            return nil
        }
        return session
    }

    func signOut(_ secret: String) async throws {
        let session = try await cases.access.session(secret, isUse: false, now: cases.now)
        let caller = session.map { Caller(name: $0.name, role: $0.role, topic: $0.topic, proof: .session) }
        try await cases.access.signOut(secret)
        if let caller { try await cases.recordSignedOut(by: caller.actor) }
    }

    /// Counts a wrong secret against its address, and tells log and audit of it, which is bounded. Throws 429 for an
    /// address that has been wrong too often.
    private func refused(_ context: WebContext) async throws {
        let address = context.clientAddress
        if let count = refusals.count(address) {
            context.logger.warning(
                "wrong access tokens", metadata: ["address": "\(address)", "attempts": "\(count)"])
            // A store that cannot be written to now does not change the answer.
            try? await cases.recordRefused(count, from: address)
        }
        try limiter.check(address)
        limiter.failed(address)
    }

    private static let forwardedHeaders = [
        "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via",
    ]

    /// Whether a caller may read what names every app's campaigns and the store's own errors: one on this machine whom no
    /// proxy speaks for, and one with a token that is good for all apps.
    func isTrusted(_ request: Request, _ context: WebContext) async -> Bool {
        if let secret = Self.bearer(request) {
            let token = try? await cases.access.authenticate(secret, now: cases.now)
            return token.map { $0.topic == nil && $0.role.may(.read) } ?? false
        }
        let proxy = cases.configuration().http.proxy
        let isForwarded = (Self.forwardedHeaders + [proxy?.userHeader, proxy?.roleHeader].compactMap(\.self))
            .contains { request.header($0) != nil }
        return !isForwarded && ConnectionTable.isLocal(context.clientAddress)
    }

    /// Whether everybody may read the metrics of every app.
    var hasOpenMetrics: Bool { cases.configuration().http.openMetrics }

    /// A header counts from named addresses alone: anybody can send one.
    private func proxied(_ request: Request, _ context: WebContext) throws -> Caller? {
        guard let proxy = cases.configuration().http.proxy, proxy.addresses.contains(context.clientAddress),
            let user = try request.single(proxy.userHeader), !user.isEmpty
        else { return nil }
        guard AccountName.isPlain(user) else {
            throw Problem(
                400, "bad_request", "Bad request",
                "the proxy names the user with invisible signs or separate accents, which could stand for another account; "
                    + "have it send the name in Unicode's composed form (NFC)")
        }
        let role = try proxy.roleHeader.flatMap { try request.single($0) }.map { word in
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

    /// Behind TLS only the cookie that no other host can set counts.
    static func cookie(of request: Request) -> String? {
        request.cookies[isSecure(request) ? names.secure : names.plain]?.value
    }

    /// - Parameter secret: nil ends it.
    static func cookie(_ secret: String?, for request: Request) -> Cookie {
        let isSecure = isSecure(request)
        return Cookie(
            name: isSecure ? names.secure : names.plain, value: secret ?? "",
            maxAge: secret == nil ? 0 : cookieSeconds, path: "/", secure: isSecure, httpOnly: true,
            sameSite: .lax)
    }

    /// Whether a proxy says that its client speaks TLS.
    private static func isSecure(_ request: Request) -> Bool {
        request.header("X-Forwarded-Proto")?.lowercased() == "https"
    }
}

/// A way in for whoever started the server from a terminal: good once, and for 15 minutes. It stands in a terminal's or a
/// journal's text, where others may read it later.
package final class OneTimeLink: Sendable {
    package static let goodFor: Duration = .seconds(900)

    private let code: Mutex<String?>
    private let uptime: @Sendable () -> Duration
    private let endsAt: Duration

    /// - Parameters:
    ///   - code: nil: there is none.
    ///   - uptime: the time since the machine started.
    package init(_ code: String?, uptime: @escaping @Sendable () -> Duration) {
        self.code = Mutex(code)
        self.uptime = uptime
        endsAt = uptime() + Self.goodFor
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
            guard uptime() < endsAt else { return false }
            guard let known = code, known.utf8.elementsEqual(given.utf8) else { return false }
            code = nil
            return true
        }
    }
}
