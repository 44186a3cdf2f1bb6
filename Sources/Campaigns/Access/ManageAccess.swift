package import Model
import Platform
package import Store

/// Creates and revokes access tokens, finds the token or session of a secret, and signs people in and out of the web
/// pages.
package struct ManageAccess: Sendable {
    /// The minimum time between two recorded uses of a token, and between two extensions of a session.
    private static let useInterval: Duration = .seconds(300)
    /// The time after which an unused session ends.
    private static let sessionIdleMax: Duration = .seconds(12 * 3600)
    private static let sessionMax: Duration = .seconds(30 * 86_400)

    let store: any AccessLog
    let recent: RecentTokens
    private let people: ConfiguredPeople
    private let randomBytes: @Sendable (_ count: Int) -> [UInt8]

    /// - Parameters:
    ///   - recent: the cache of tokens and sessions that this process shares.
    ///   - people: the people that the configuration names. This type creates no token whose name or id is assigned
    ///     to one of them. Empty for the operator's own command, which may create such tokens.
    ///   - randomBytes: returns random bytes for secrets. A test may replace the system's generator.
    package init(
        store: any AccessLog, recent: RecentTokens = RecentTokens(), people: ConfiguredPeople = ConfiguredPeople(),
        randomBytes: @escaping @Sendable (_ count: Int) -> [UInt8] = { count in
            var source = SystemRandomNumberGenerator()
            return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &source) }
        }
    ) {
        self.store = store
        self.recent = recent
        self.people = people
        self.randomBytes = randomBytes
    }

    /// Creates a token and returns it with its secret. The store keeps only a hash of the secret, so the caller must
    /// show the secret now.
    ///
    /// - Parameters:
    ///   - topic: the topic of the only app that the token is valid for; `nil` for all apps.
    ///   - expiresIn: the token's lifetime; `nil` if the token does not expire.
    package func create(
        name: String, role: AccessRole, topic: String?, expiresIn: Duration?, by actor: Actor, now: Timestamp
    ) async throws -> (token: AccessToken, secret: String) {
        try await requireUsable(name)
        if let expiresIn, expiresIn <= .zero {
            throw Failure(.invalidData, "a token that expires immediately is useless; give a longer time, such as 90d")
        }
        let secret = makeSecret()
        let token = try await store.createAccessToken(
            AccessToken(
                id: 0, name: name, role: role, topic: topic, createdAt: now, createdBy: actor.name,
                expiresAt: expiresIn.map { now + $0 }, revokedAt: nil, lastUsedAt: nil),
            secretHash: Self.hash(secret), by: actor)
        return (token, secret)
    }

    /// Throws if a new token may not have this name.
    func requireUsable(_ name: String) async throws {
        guard AccountName.isForToken(name) else {
            throw Failure(
                .invalidData,
                "\"\(Redaction.beginning(of: name, scalars: AccountName.lengthMax))\" cannot be a token's name: accounts are "
                    + "compared byte by byte; write up to \(AccountName.lengthMax) of A to Z, a to z, 0 to 9 and . - _ @, a "
                    + "letter first")
        }
        guard !Self.isReserved(name) else {
            throw Failure(
                .invalidData,
                "\"\(name)\" cannot be a token's name: Fanfare uses it in the audit log; give another name")
        }
        try await requireNotPromised(name)
    }

    /// Returns all tokens, revoked and expired ones included, oldest first.
    package func list() async throws -> [AccessToken] { try await store.accessTokens() }

    /// Returns whether a person created a token that is not revoked. An expired token counts. The token of a sign-in
    /// link does not count.
    package func hasTokens() async throws -> Bool { try await store.hasAccessTokens() }

    /// Revokes a token and ends all sessions that were opened with it.
    ///
    /// - Parameters:
    ///   - text: the token's id or name.
    ///   - keepsAdmin: whether to refuse to revoke the last token of an admin. The operator's own command may do it.
    package func revoke(
        _ text: String, keepsAdmin: Bool = false, by actor: Actor, now: Timestamp
    ) async throws -> AccessToken {
        defer { recent.forgetAll() }
        return try await store.revokeAccessToken(text, keepsAdmin: keepsAdmin, by: actor, now: now)
    }

    /// Returns the token that a secret belongs to; `nil` if no valid token has this secret. A revoked or expired token
    /// is not valid.
    ///
    /// The look-up uses the hash, so that its duration reveals nothing about the secret. The result is cached for one
    /// second. While the store is unreachable, a token that was looked up in the last 12 hours is still accepted.
    package func authenticate(_ secret: String, now: Timestamp) async throws -> AccessToken? {
        guard AccessSecret.isPlausible(secret) else { return nil }
        let hash = Self.hash(secret)
        if let token = recent.token(secretHash: hash, now: now), token.isGood(at: now) { return token }
        let found: AccessToken?
        do {
            found = try await store.accessToken(secretHash: hash)
        } catch let error as StoreError where error.isPassing {
            guard let token = recent.tokenWithoutStore(secretHash: hash, now: now), token.isGood(at: now) else {
                throw error
            }
            return token
        }
        guard let token = found, token.isGood(at: now) else {
            recent.forget(secretHash: hash)
            return nil
        }
        recent.remember(token, secretHash: hash, now: now)
        if token.lastUsedAt.map({ now - $0 >= Self.useInterval }) ?? true {
            // If the store cannot be written to now, the caller is still authenticated.
            try? await store.markAccessTokenUsed(token.id, now: now)
        }
        return token
    }

    /// Starts a session for the holder of a token, and returns the session's secret. The session ends no later than
    /// the token.
    package func signIn(_ token: AccessToken, by actor: Actor, now: Timestamp) async throws -> String {
        let end = min(token.expiresAt ?? now + Self.sessionMax, now + Self.sessionMax)
        let session = WebSession(
            name: token.name, role: token.role, topic: token.topic, token: token.id, createdAt: now,
            expiresAt: min(now + Self.sessionIdleMax, end), endsAt: end)
        let secret = makeSecret()
        guard try await store.createSession(session, secretHash: Self.hash(secret), by: actor) else {
            throw Failure(
                .refused, "the access token \"\(token.name)\" is revoked or has expired; ask an admin for another token"
            )
        }
        // The session has begun. The next one removes what is left.
        _ = try? await store.removeExpiredSessions(now: now)
        return secret
    }

    /// Creates the token of one sign-in link: an admin token whose secret is discarded. The token exists so that it
    /// can be listed and revoked, together with the session that the link opens. The token expires after 30 days,
    /// the maximum length of that session.
    package func makeLinkToken(now: Timestamp) async throws -> AccessToken {
        let number = Hex.text(randomBytes(4))
        let name = AccessToken.linkPrefix + number
        return try await store.createAccessToken(
            AccessToken(
                id: 0, name: name, role: .admin, topic: nil, createdAt: now, createdBy: "a sign-in link",
                expiresAt: now + Self.sessionMax, revokedAt: nil, lastUsedAt: now),
            secretHash: Self.hash(makeSecret()), by: Actor("\(name) (sign-in link)", origin: .page))
    }

    /// Returns the session that a secret belongs to; `nil` if no session has this secret, or the session is over.
    /// Each use extends the session to 12 hours after that use, but never beyond the session's fixed end.
    ///
    /// - Parameter isUse: `false` if the call only looks at the session and must not extend it.
    package func session(_ secret: String, isUse: Bool = true, now: Timestamp) async throws -> WebSession? {
        guard AccessSecret.isPlausible(secret) else { return nil }
        let hash = Self.hash(secret)
        let found: WebSession?
        do {
            found = try await store.session(secretHash: hash)
        } catch let error as StoreError where error.isPassing {
            guard let session = recent.sessionWithoutStore(secretHash: hash, now: now), session.isGood(at: now) else {
                throw error
            }
            return session
        }
        guard var session = found, session.isGood(at: now) else {
            recent.forget(secretHash: hash)
            return nil
        }
        recent.remember(session, secretHash: hash, now: now)
        let end = min(now + Self.sessionIdleMax, session.endsAt)
        if isUse, end - session.expiresAt >= Self.useInterval {
            session.expiresAt = end
            try? await store.extendSession(secretHash: hash, to: end)
        }
        return session
    }

    package func signOut(_ secret: String) async throws {
        recent.forget(secretHash: Self.hash(secret))
        try await store.removeSession(secretHash: Self.hash(secret))
    }

    /// Returns the code of a sign-in link that works once.
    package func makeLinkCode() -> String { makeSecret() }

    func makeSecret() -> String { AccessSecret.text(randomBytes(AccessSecret.byteCount)) }

    static func hash(_ secret: String) -> String { Digest.sha256Hex(Array(secret.utf8)) }

    /// Returns whether Fanfare itself writes this name into the audit log. No token may have such a name.
    private static func isReserved(_ name: String) -> Bool {
        let name = name.lowercased()
        return ["terminal", "daemon", "fanfare", "unknown"].contains(name) || name.hasPrefix(AccessToken.linkPrefix)
    }

    /// Throws if `people` assigns a token of this name, or of an id that the new token could get, to a person.
    /// Otherwise an admin could create a token that counts as that person's account, and sign plans with it.
    private func requireNotPromised(_ name: String) async throws {
        if let person = people.person(ofTokenNamed: name) {
            throw Failure(
                .refused,
                "the token \"\(name)\" cannot be created here: `people` in the configuration assigns that name to "
                    + "\(person); give another name, or ask the operator to run `fanfare tokens create \(name)`")
        }
        guard let promised = people.tokenIDs.max() else { return }
        let last = try await store.accessTokens().map(\.id).max() ?? 0
        guard promised > last else { return }
        throw Failure(
            .refused,
            "no token is created here now: `people` in the configuration names token:#\(promised), which does not exist, and a "
                + "new token could get that id; ask the operator to correct `people`, or to run "
                + "`fanfare tokens create \(name)`")
    }
}

/// The stable shape of each token in `tokens list --json`; times in ISO 8601 and UTC.
package struct AccessTokenResult: Codable, Hashable, Sendable {
    package var id: Int64
    package var name: String
    package var role: String
    /// Absent if the token is valid for every app.
    package var topic: String?
    /// `good`, `expired` or `revoked`; `invited` until a person accepts the invitation.
    package var state: String
    package var createdAt: String
    package var createdBy: String
    /// Absent if the token does not expire.
    package var expiresAt: String?
    package var revokedAt: String?
    /// Accurate to about 5 minutes; absent if the token was never used.
    package var lastUsedAt: String?
    /// Present only in the response to the caller that created the token.
    package var secret: String?

    package init(_ token: AccessToken, secret: String? = nil, now: Timestamp) {
        id = token.id
        name = token.name
        role = token.role.rawValue
        topic = token.topic
        state =
            token.isGood(at: now)
            ? "good" : token.isOpenInvitation(at: now) ? "invited" : token.revokedAt == nil ? "expired" : "revoked"
        createdAt = token.createdAt.iso8601
        createdBy = token.createdBy
        expiresAt = token.expiresAt?.iso8601
        revokedAt = token.revokedAt?.iso8601
        lastUsedAt = token.lastUsedAt?.iso8601
        self.secret = secret
    }
}
