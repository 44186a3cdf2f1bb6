package import Model
import Store

extension RelationalStore {
    package func createAccessToken(
        _ token: AccessToken, secretHash: String, by actor: Actor
    ) async throws -> AccessToken {
        try await transaction(.durable) { db in
            let rows = AccessTokenRow(db)
            guard try !rows.isTaken(token.name) else { throw StoreError.accessTokenExists(name: token.name) }
            // Another process may create a token of this name at the same time.
            guard let made = try rows.insert(token, secretHash: secretHash) else {
                throw StoreError.accessTokenExists(name: token.name)
            }
            try db.record(.tokenCreated, by: actor, made.summary, now: token.createdAt)
            return made
        }
    }

    package func accessTokens() async throws -> [AccessToken] {
        try await snapshot(.short) { db in try AccessTokenRow(db).list() }
    }

    package func accessToken(secretHash: String) async throws -> AccessToken? {
        try await snapshot(.short) { db in try AccessTokenRow(db).fetch("secret_hash = $1", secretHash).first }
    }

    package func tokenNames(of ids: Set<Int64>) async throws -> [Int64: String] {
        try await snapshot(.short) { db in
            let rows = AccessTokenRow(db)
            return try ids.reduce(into: [:]) { names, id in
                names[id] = try rows.fetch("id = $1", id).first?.nameOfHolder
            }
        }
    }

    package func hasAccessTokens() async throws -> Bool {
        try await snapshot(.short) { db in
            try db.first(
                """
                SELECT EXISTS (
                    SELECT 1 FROM access_token
                    WHERE revoked_at IS NULL AND NOT is_invitation AND substr(name, 1, length($1)) <> $1
                )
                """, AccessToken.linkPrefix
            ) { try $0.bool(0) } ?? false
        }
    }

    package func revokeAccessToken(
        _ text: String, keepsAdmin: Bool, by actor: Actor, now: Timestamp
    ) async throws -> AccessToken {
        try await transaction(.durable) { db in
            let rows = AccessTokenRow(db)
            // Two admins must not remove each other at the same time.
            if keepsAdmin { try db.lock(table: "access_token") }
            guard var token = try rows.locked(text) else { throw StoreError.noSuchAccessToken(text) }
            guard token.revokedAt == nil else { return token }
            if keepsAdmin { try rows.requireOtherAdmin(than: token, now: now) }
            try rows.revoke(token.id, now: now)
            token.revokedAt = now
            try db.record(.tokenRevoked, by: actor, token.summary, now: now)
            return token
        }
    }

    package func changeAccessToken(
        _ text: String, role: AccessRole, topic: String?, by actor: Actor, now: Timestamp
    ) async throws -> AccessToken {
        try await transaction(.durable) { db in
            let rows = AccessTokenRow(db)
            try db.lock(table: "access_token")
            guard let token = try rows.locked(text), token.isGood(at: now) else {
                throw StoreError.noSuchAccessToken(text)
            }
            var changed = token
            (changed.role, changed.topic) = (role, topic)
            guard changed != token else { return token }
            if role != .admin || topic != nil { try rows.requireOtherAdmin(than: token, now: now) }
            try rows.change(changed)
            try db.record(.tokenChanged, by: actor, "\(changed.summary); before: \(token.summary)", now: now)
            return changed
        }
    }

    package func invite(_ invitation: AccessToken, secretHash: String, by actor: Actor) async throws -> AccessToken {
        try await transaction(.durable) { db in
            let rows = AccessTokenRow(db)
            try db.lock(table: "access_token")
            var made = invitation
            if let earlier = try rows.fetch("name = $1 LIMIT 1", invitation.name).first {
                guard earlier.isInvitation else { throw StoreError.accessTokenExists(name: invitation.name) }
                made.id = earlier.id
                try rows.replace(made, secretHash: secretHash)
            } else {
                guard let inserted = try rows.insert(invitation, secretHash: secretHash) else {
                    throw StoreError.accessTokenExists(name: invitation.name)
                }
                made = inserted
            }
            try db.record(.personInvited, by: actor, made.summary, now: made.createdAt)
            return made
        }
    }

    package func acceptInvitation(
        secretHash: String, newHash: String, by actor: Actor, now: Timestamp
    ) async throws -> AccessToken? {
        try await transaction(.durable) { db in
            let rows = AccessTokenRow(db)
            guard var token = try rows.fetch("secret_hash = $1\(Session.dialect.lock)", secretHash).first,
                token.isOpenInvitation(at: now)
            else { return nil }
            (token.isInvitation, token.expiresAt) = (false, nil)
            try rows.replace(token, secretHash: newHash)
            try db.record(.personJoined, by: actor, token.summary, now: now)
            return token
        }
    }

    package func markAccessTokenUsed(_ id: Int64, now: Timestamp) async throws {
        try await transaction(.quick) { db in
            try db.execute(
                """
                UPDATE access_token SET last_used_at = \(Session.dialect.greatest)(coalesce(last_used_at, $2), $2)
                WHERE id = $1
                """, id, now)
        }
    }

    package func createSession(_ session: WebSession, secretHash: String, by actor: Actor) async throws -> Bool {
        try await transaction(.quick) { db in
            var session = session
            if let token = session.token {
                // The lock prevents a revocation or a change between this check and the commit. The role may have
                // changed since the caller read the token.
                let found = try AccessTokenRow(db).fetch("id = $1\(Session.dialect.share)", token).first
                guard let found, found.isGood(at: session.createdAt) else { return false }
                (session.role, session.topic) = (found.role, found.topic)
            }
            try WebSessionRow.insert(session, secretHash: secretHash, db)
            try db.record(
                .signedIn, by: actor, "\(session.name), \(session.role.rawValue)",
                now: session.createdAt)
            return true
        }
    }

    package func session(secretHash: String) async throws -> WebSession? {
        try await snapshot(.short) { db in try WebSessionRow.fetch(secretHash, db) }
    }

    package func extendSession(secretHash: String, to moment: Timestamp) async throws {
        try await transaction(.quick) { db in
            try db.execute(
                """
                UPDATE web_session SET expires_at = \(Session.dialect.least)($2, ends_at) WHERE secret_hash = $1
                """, secretHash, moment)
        }
    }

    package func removeSession(secretHash: String) async throws {
        try await transaction(.quick) { db in
            try db.execute("DELETE FROM web_session WHERE secret_hash = $1", secretHash)
        }
    }

    package func removeExpiredSessions(now: Timestamp) async throws -> Int {
        try await transaction(.quick) { db in try db.execute("DELETE FROM web_session WHERE expires_at <= $1", now) }
    }
}

/// Rows of `access_token`.
private struct AccessTokenRow<Session: SQLSession> {
    private let db: Session

    init(_ db: Session) { self.db = db }

    /// Fetches tokens. `condition` is a constant text of this module, with `$1`, `$2` and so on for its values.
    func fetch(_ condition: String, _ values: any SQLValue...) throws -> [AccessToken] {
        try db.all(Self.select(condition), values: values, read: Self.token)
    }

    /// Returns all tokens, except those whose row cannot be read.
    func list() throws -> [AccessToken] {
        try db.readable(Self.select("true ORDER BY id"), values: [], read: Self.token)
    }

    private static func select(_ condition: String) -> SQLStatement {
        """
        SELECT id, name, role, topic, created_at, created_by, expires_at, revoked_at, last_used_at, is_invitation
        FROM access_token WHERE \(condition)
        """
    }

    /// Returns the token of this name that is not revoked, and locks it until the transaction ends.
    func named(_ name: String) throws -> AccessToken? {
        try fetch("name = $1 AND revoked_at IS NULL\(Session.dialect.lock)", name).first
    }

    /// Returns whether any token has or had this name.
    func isTaken(_ name: String) throws -> Bool { try !fetch("name = $1 LIMIT 1", name).isEmpty }

    /// Inserts a token. Returns `nil` if there is an unrevoked token of this name.
    func insert(_ token: AccessToken, secretHash: String) throws -> AccessToken? {
        let id = try db.first(
            """
            INSERT INTO access_token (secret_hash, name, role, topic, created_at, created_by, expires_at, is_invitation)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            \(Session.dialect.unlessThere("(name) WHERE revoked_at IS NULL")) RETURNING id
            """, secretHash, token.name, token.role.rawValue, token.topic, token.createdAt, token.createdBy,
            token.expiresAt, token.isInvitation
        ) { try $0.int64(0) }
        var made = token
        if let id { made.id = id }
        return id == nil ? nil : made
    }

    /// Returns the token with this id, or the unrevoked one of this name, and locks it until the transaction ends.
    func locked(_ text: String) throws -> AccessToken? {
        try Int64(text).map { try fetch("id = $1\(Session.dialect.lock)", $0).first } ?? named(text)
    }

    /// Throws if a token is the last valid one of an admin of all apps. One that ends within a day does not count: only
    /// the command line could then make another.
    func requireOtherAdmin(than token: AccessToken, now: Timestamp) throws {
        func isAdmin(_ token: AccessToken) -> Bool {
            token.role == .admin && token.topic == nil && token.isGood(at: now) && token.nameOfHolder != nil
        }
        let tomorrow = now + .seconds(24 * 3600)
        let hasOther = try list().contains { $0.id != token.id && isAdmin($0) && $0.isGood(at: tomorrow) }
        guard isAdmin(token), !hasOther else { return }
        throw StoreError.lastAdmin(name: token.name)
    }

    /// Changes the role and the app of a token and of its sessions.
    func change(_ token: AccessToken) throws {
        for (table, id) in [("access_token", "id"), ("web_session", "token_id")] {
            try db.execute(
                "UPDATE \(table) SET role = $2, topic = $3 WHERE \(id) = $1", token.id,
                token.role.rawValue, token.topic)
        }
    }

    /// Writes everything of a token anew but its name and id.
    func replace(_ token: AccessToken, secretHash: String) throws {
        try db.execute(
            """
            UPDATE access_token
            SET secret_hash = $2, role = $3, topic = $4, created_at = $5, created_by = $6, expires_at = $7,
                revoked_at = NULL, is_invitation = $8
            WHERE id = $1
            """, token.id, secretHash, token.role.rawValue, token.topic, token.createdAt, token.createdBy,
            token.expiresAt, token.isInvitation)
    }

    /// Revokes a token and ends its sessions.
    func revoke(_ token: Int64, now: Timestamp) throws {
        try db.execute("UPDATE access_token SET revoked_at = $2 WHERE id = $1", token, now)
        try db.execute("DELETE FROM web_session WHERE token_id = $1", token)
    }

    private static func token(_ row: Session.Fields) throws -> AccessToken {
        AccessToken(
            id: try row.int64(0), name: try row.text(1), role: try AccessRole(stored: try row.text(2)),
            topic: try row.textOrNil(3), createdAt: try row.timestamp(4), createdBy: try row.text(5),
            expiresAt: try row.timestampOrNil(6), revokedAt: try row.timestampOrNil(7),
            lastUsedAt: try row.timestampOrNil(8), isInvitation: try row.bool(9))
    }
}

/// Rows of `web_session`.
private enum WebSessionRow {
    static func fetch(_ hash: String, _ db: some SQLSession) throws -> WebSession? {
        try db.first(
            """
            SELECT name, role, topic, token_id, created_at, expires_at, ends_at FROM web_session WHERE secret_hash = $1
            """, hash
        ) { row in
            WebSession(
                name: try row.text(0), role: try AccessRole(stored: try row.text(1)), topic: try row.textOrNil(2),
                token: try row.int64OrNil(3), createdAt: try row.timestamp(4), expiresAt: try row.timestamp(5),
                endsAt: try row.timestamp(6))
        }
    }

    static func insert(_ session: WebSession, secretHash: String, _ db: some SQLSession) throws {
        try db.execute(
            """
            INSERT INTO web_session (secret_hash, token_id, name, role, topic, created_at, expires_at, ends_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            """, secretHash, session.token, session.name, session.role.rawValue, session.topic, session.createdAt,
            session.expiresAt, session.endsAt)
    }
}

extension AccessRole {
    fileprivate init(stored word: String) throws {
        guard let role = AccessRole(rawValue: word) else {
            throw UnreadableValue("an access token has the unknown role \(word)")
        }
        self = role
    }
}

extension AccessToken {
    /// The description for the audit log.
    fileprivate var summary: String {
        "\(name): \(role.rawValue)" + (topic.map { " for \($0)" } ?? "")
            + (expiresAt.map { ", until \($0.iso8601)" } ?? "")
    }
}
