import Campaigns
import Foundation
import HTTPTypes
import Hummingbird
import Logging
import Model
import Synchronization

/// Authenticates callers: programs by an access token, people by a session cookie or by a trusted proxy's header. The
/// API accepts no cookie. The pages accept a token only for signing in.
struct Authenticator: Sendable {
    let link: OneTimeLink
    let cases: UseCases
    /// Slows down callers that guess tokens. The key is an address.
    private let limiter: RateLimiter
    private let refusals: RefusalReports

    init(_ cases: UseCases, link: OneTimeLink) {
        self.cases = cases
        self.link = link
        limiter = RateLimiter(atOnce: 10, secondsEach: 6) { cases.uptime }
        refusals = RefusalReports { cases.uptime }
    }

    /// Returns the caller of the API. Throws 401 if the token is missing or not valid, and 429 after too many wrong
    /// tokens.
    func program(_ request: Request, _ context: WebContext) async throws -> Caller {
        guard let secret = Self.bearer(request) else {
            throw Problem.unauthorized(
                "send an access token: `Authorization: Bearer fanfare_...`; `fanfare tokens create` creates one")
        }
        if let caller = try await holder(of: secret) { return caller }
        if let installation = try await cases.installationSecrets.installation(presenting: secret) {
            return Caller(
                name: "device \(installation.device)", role: .registrar, topic: installation.topic,
                proof: .installation(installation))
        }
        throw try await unknownToken(context)
    }

    /// Returns the caller with an access token of this secret; `nil` if there is none.
    private func holder(of secret: String) async throws -> Caller? {
        try await cases.access.authenticate(secret, now: cases.now).map {
            Caller(name: $0.name, role: $0.role, topic: $0.topic, proof: .token)
        }
    }

    /// Returns the visitor of the pages, or `nil` if no person is signed in.
    func person(_ request: Request, _ context: WebContext) async throws -> Caller? {
        try await person(request, context, isUse: true)
    }

    /// Returns whether the caller of a long request has the same rights as at its start. A session that was ended or
    /// has expired gives no rights, and neither does a token. An open page does not extend its session. An installation
    /// reports only about itself, so its secret is not looked up again.
    func isStill(_ caller: Caller, _ request: Request, _ context: WebContext) async throws -> Bool {
        switch caller.proof {
        case .installation: true
        case .token: try await holder(of: Self.bearer(request) ?? "") == caller
        case .session, .proxy: try await person(request, context, isUse: false) == caller
        }
    }

    private func person(_ request: Request, _ context: WebContext, isUse: Bool) async throws -> Caller? {
        if let caller = try proxied(request, context) { return caller }
        guard let secret = Self.cookie(of: request) else { return nil }
        return try await cases.access.session(secret, isUse: isUse, now: cases.now).map {
            Caller(name: $0.name, role: $0.role, topic: $0.topic, proof: .session)
        }
    }

    /// Returns the token with this secret. Slows down callers that guess.
    func token(_ secret: String, _ context: WebContext) async throws -> AccessToken {
        if let token = try await cases.access.authenticate(secret, now: cases.now) { return token }
        throw try await unknownToken(context)
    }

    /// Counts a wrong secret, and returns the response to it.
    private func unknownToken(_ context: WebContext) async throws -> Problem {
        // Only wrong secrets count, because behind a proxy all callers share one address.
        try await refused(context)
        return Problem.unauthorized(
            "this access token is unknown, expired or revoked; `fanfare tokens list` shows the valid ones")
    }

    /// Starts a session with a token's secret. Returns the cookie's value.
    func signIn(_ secret: String, _ context: WebContext) async throws -> String {
        let token = try await token(secret, context)
        guard token.role != .registrar else {
            throw Problem.forbidden(
                "\(token.name) is a registrar's token, which only registers devices; use another role's token for pages"
            )
        }
        let caller = Caller(name: token.name, role: token.role, topic: token.topic, proof: .session)
        return try await cases.access.signIn(token, by: caller.actor, now: cases.now)
    }

    /// Starts a session with the link that a terminal showed. Returns `nil` if the link was used, has expired or
    /// belongs to another server. The session belongs to a token of its own, which `fanfare tokens` lists and revokes.
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

    /// Counts a wrong secret against its address. Reports it to the log and the audit log, if ``RefusalReports`` allows
    /// it. Throws 429 if the address has sent too many wrong secrets.
    func refused(_ context: WebContext) async throws {
        let address = context.clientAddress
        if let count = refusals.count(address) {
            context.logger.warning(
                "wrong access tokens", metadata: ["address": "\(address)", "attempts": "\(count)"])
            // If the store cannot be written to now, the response stays the same.
            try? await cases.recordRefused(count, from: address)
        }
        if let wait = limiter.wait(address) {
            throw Problem(
                429, "too_many_attempts", "Too many attempts",
                "too many wrong tokens from this address; wait \(wait) s, and create a new token with `fanfare tokens "
                    + "create`",
                retryAfter: wait)
        }
        limiter.use(address)
    }

    private static let forwardedHeaders = [
        "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via",
    ]

    /// Returns whether a caller may read the names of every app's campaigns and the store's own errors. A caller with a
    /// token may if the token can read all apps. Another caller may if it is on this machine and no proxy forwards the
    /// request.
    func isTrusted(_ request: Request, _ context: WebContext) async -> Bool {
        if let secret = Self.bearer(request) {
            let token = try? await cases.access.authenticate(secret, now: cases.now)
            return token.map { $0.topic == nil && $0.role.may(.read) } ?? false
        }
        let proxy = cases.configuration().http.proxy
        let isForwarded = (Self.forwardedHeaders + [proxy?.userHeader, proxy?.roleHeader].compactMap(\.self))
            .contains { request.header($0) != nil }
        return !isForwarded && ConnectionTable.isLocal(context.clientAddress)
            && Self.isNameOfThisMachine(request.head.authority ?? "")
    }

    /// Returns whether a Host field is an address, or a name without a domain such as `localhost`. A page of another
    /// site can make a browser here ask under its own name, if that name leads here; it always has a domain.
    static func isNameOfThisMachine(_ host: String) -> Bool {
        if host.hasPrefix("[") { return true }
        let name = host.prefix { $0 != ":" }
        return !name.contains(".") || name.allSatisfy { $0.isNumber || $0 == "." }
    }

    /// Whether every caller may read the metrics of every app.
    var hasOpenMetrics: Bool { cases.configuration().http.openMetrics }

    /// Returns the caller that a trusted proxy names. The header counts only from configured addresses, because any
    /// client can send it.
    private func proxied(_ request: Request, _ context: WebContext) throws -> Caller? {
        guard let proxy = cases.configuration().http.proxy, proxy.addresses.contains(context.clientAddress),
            let user = try request.single(proxy.userHeader), !user.isEmpty
        else { return nil }
        guard AccountName.isPlain(user) else {
            throw Problem(
                400, "bad_request", "Bad request",
                "the proxy sends a user name with invisible characters or combining accents, which could be confused "
                    + "with another account; have it send the name in Unicode's composed form (NFC)")
        }
        let role = try proxy.roleHeader.flatMap { try request.single($0) }.map { word in
            try AccessRole(rawValue: word).orThrow(
                Problem.forbidden(
                    "the proxy says that \(user) is \"\(word)\", which is not a Fanfare role; fix the header"))
        }
        return Caller(name: user, role: role ?? proxy.role, topic: nil, proof: .proxy)
    }

    private static func bearer(_ request: Request) -> String? {
        guard let value = request.headers[.authorization] else { return nil }
        let parts = value.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return parts[1].trimmingCharacters(in: .whitespaces)
    }
}

extension Authenticator {
    /// The names of the session cookie. Browsers accept the `__Host-` name only with TLS, for this host and every path.
    private static let names = (secure: "__Host-fanfare", plain: "fanfare")
    /// The lifetime of the cookie, in seconds. It equals the longest session; the server may end the session earlier.
    private static let cookieSeconds = 30 * 86_400

    /// Returns the secret in the session cookie. Behind TLS, only the `__Host-` cookie counts, which no other host can
    /// set.
    static func cookie(of request: Request) -> String? {
        request.cookies[isSecure(request) ? names.secure : names.plain]?.value
    }

    /// - Parameter secret: the session's secret. `nil` deletes the cookie.
    static func cookie(_ secret: String?, for request: Request) -> Cookie {
        let isSecure = isSecure(request)
        return Cookie(
            name: isSecure ? names.secure : names.plain, value: secret ?? "",
            maxAge: secret == nil ? 0 : cookieSeconds, path: "/", secure: isSecure, httpOnly: true,
            sameSite: .lax)
    }

    /// Returns whether a proxy reports that its client speaks TLS.
    private static func isSecure(_ request: Request) -> Bool {
        request.header("X-Forwarded-Proto")?.lowercased() == "https"
    }
}

/// A sign-in link for the operator who started the server from a terminal. It works once and expires after 15 minutes,
/// because other people may read the terminal or the journal later.
package final class OneTimeLink: Sendable {
    package static let goodFor: Duration = .seconds(900)

    private let code: Mutex<String?>
    private let uptime: @Sendable () -> Duration
    private let endsAt: Duration

    /// - Parameters:
    ///   - code: the link's code, or `nil` for no link.
    ///   - uptime: the time since the machine started.
    package init(_ code: String?, uptime: @escaping @Sendable () -> Duration) {
        self.code = Mutex(code)
        self.uptime = uptime
        endsAt = uptime() + Self.goodFor
    }

    /// Spends the code and performs `body`. Returns `nil` if the code is wrong, spent or expired. If `body` throws, for
    /// instance because the store is busy, the code becomes valid again. No other caller can use the code in the
    /// meantime.
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
