package import Model
import Sending
package import Store

/// Makes and revokes access tokens, says whose a secret is, and signs people in and out at the web's pages.
package struct ManageAccess: Sendable {
    /// A use is put on record so often at most.
    private static let useInterval: Duration = .seconds(300)
    /// Of a session nobody uses.
    private static let sessionIdleMax: Duration = .seconds(12 * 3600)
    private static let sessionMax: Duration = .seconds(30 * 86_400)

    private let store: any AccessLog
    private let recent: RecentTokens
    private let people: ConfiguredPeople
    private let randomBytes: @Sendable (_ count: Int) -> [UInt8]

    /// - Parameters:
    ///   - recent: of this process.
    ///   - people: of the configuration. Its accounts are not given to tokens that are created here. Empty for the operator's
    ///     own command.
    ///   - randomBytes: from the system's source for keys, unless a test says otherwise.
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

    /// A new token, and its secret, which is kept nowhere and shown now or never.
    ///
    /// - Parameters:
    ///   - topic: of the only app it is good for; nil: all.
    ///   - expiresIn: nil: it does not end by itself.
    package func create(
        name: String, role: AccessRole, topic: String?, expiresIn: Duration?, by actor: Actor, now: Timestamp
    ) async throws -> (token: AccessToken, secret: String) {
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
                "\"\(name)\" cannot be a token's name: Fanfare itself writes it into the record; give another name")
        }
        if let expiresIn, expiresIn <= .zero {
            throw Failure(.invalidData, "a token that ends at once is of no use; give it some time, such as 90d")
        }
        try await requireNotPromised(name)
        let secret = makeSecret()
        let token = try await store.createAccessToken(
            AccessToken(
                id: 0, name: name, role: role, topic: topic, createdAt: now, createdBy: actor.name,
                expiresAt: expiresIn.map { now + $0 }, revokedAt: nil, lastUsedAt: nil),
            secretHash: Self.hash(secret), by: actor)
        return (token, secret)
    }

    /// All that there were, oldest first.
    package func list() async throws -> [AccessToken] { try await store.accessTokens() }

    /// Whether there is a token that nobody revoked; one that has ended counts.
    package func hasTokens() async throws -> Bool { try await store.hasAccessTokens() }

    /// Ends a token and all sessions that came of it.
    ///
    /// - Parameter text: its id or its name.
    package func revoke(_ text: String, by actor: Actor, now: Timestamp) async throws -> AccessToken {
        defer { recent.forgetAll() }
        return try await store.revokeAccessToken(text, by: actor, now: now)
    }

    /// The token whose secret this is, while the store cannot be asked as it was today; nil where it is nobody's, or its token is revoked or has ended. Found by its hash, so
    /// that the time it takes tells nothing; and for a second not looked up again.
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
            // Whoever asks gets an answer, also from a store that cannot be written to now.
            try? await store.markAccessTokenUsed(token.id, now: now)
        }
        return token
    }

    /// Signs the holder of a token in; returns the session's secret. It ends with the token.
    package func signIn(_ token: AccessToken, by actor: Actor, now: Timestamp) async throws -> String {
        let end = min(token.expiresAt ?? now + Self.sessionMax, now + Self.sessionMax)
        let session = WebSession(
            name: token.name, role: token.role, topic: token.topic, token: token.id, createdAt: now,
            expiresAt: min(now + Self.sessionIdleMax, end), endsAt: end)
        let secret = makeSecret()
        guard try await store.createSession(session, secretHash: Self.hash(secret), by: actor) else {
            throw Failure(.refused, "the access token \"\(token.name)\" is revoked or has ended; ask for another one")
        }
        _ = try await store.removeExpiredSessions(now: now)
        return secret
    }

    /// The token of one sign-in link: an admin's, without a secret that anybody has. It exists to be listed and revoked, with
    /// the session that comes of the link, and ends when that session can last no longer.
    package func makeLinkToken(now: Timestamp) async throws -> AccessToken {
        let number = randomBytes(4).map { String(0x100 + Int($0), radix: 16).dropFirst() }.joined()
        let name = AccessToken.linkPrefix + number
        return try await store.createAccessToken(
            AccessToken(
                id: 0, name: name, role: .admin, topic: nil, createdAt: now, createdBy: "a sign-in link",
                expiresAt: now + Self.sessionMax, revokedAt: nil, lastUsedAt: now),
            secretHash: Self.hash(makeSecret()), by: Actor("\(name) (sign-in link)", origin: .page))
    }

    /// The session whose secret this is; nil where it is nobody's, or over. Using it keeps it alive: 12 hours from the last
    /// use, 30 days from its beginning at most.
    ///
    /// - Parameter isUse: false: it is looked at alone.
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

    /// For a link that lets somebody in once.
    package func makeLinkCode() -> String { makeSecret() }

    private func makeSecret() -> String { AccessSecret.text(randomBytes(AccessSecret.byteCount)) }

    private static func hash(_ secret: String) -> String { ContentHash.sha256(Array(secret.utf8)) }

    /// Names that stand for no holder of a token.
    private static func isReserved(_ name: String) -> Bool {
        let name = name.lowercased()
        return ["terminal", "daemon", "fanfare", "unknown"].contains(name) || name.hasPrefix(AccessToken.linkPrefix)
    }

    /// Throws if `people` says whose a token of this name, or of the id that it could get, is: an admin would make an account
    /// of another person, and sign with it.
    private func requireNotPromised(_ name: String) async throws {
        if let person = people.person(ofTokenNamed: name) {
            throw Failure(
                .refused,
                "the token \"\(name)\" is not created here: `people` in the configuration makes it an account of "
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
    /// Absent: it is good for every app.
    package var topic: String?
    /// `good`, `expired` or `revoked`.
    package var state: String
    package var createdAt: String
    package var createdBy: String
    /// Absent: it does not end by itself.
    package var expiresAt: String?
    package var revokedAt: String?
    /// To within some minutes; absent: it was never used.
    package var lastUsedAt: String?
    /// Only in the answer to whoever made it.
    package var secret: String?

    package init(_ token: AccessToken, secret: String? = nil, now: Timestamp) {
        id = token.id
        name = token.name
        role = token.role.rawValue
        topic = token.topic
        state = token.isGood(at: now) ? "good" : token.revokedAt == nil ? "expired" : "revoked"
        createdAt = token.createdAt.iso8601
        createdBy = token.createdBy
        expiresAt = token.expiresAt?.iso8601
        revokedAt = token.revokedAt?.iso8601
        lastUsedAt = token.lastUsedAt?.iso8601
        self.secret = secret
    }
}
