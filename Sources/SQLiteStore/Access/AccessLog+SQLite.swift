import GRDB
package import Model
import Store

extension SQLiteFileStore {
    package func createAccessToken(
        _ token: AccessToken, secretHash: String, by actor: Actor
    ) async throws -> AccessToken {
        try await writeDurably { db in
            let rows = AccessTokenRow(db)
            guard try !rows.isTaken(token.name) else { throw StoreError.accessTokenExists(name: token.name) }
            let made = try rows.insert(token, secretHash: secretHash)
            try EventLog.record(
                db, kind: .tokenCreated, run: nil, actor: actor, detail: made.words, now: token.createdAt)
            return made
        }
    }

    package func accessTokens() async throws -> [AccessToken] {
        try await read(.short) { db in try AccessTokenRow(db).list() }
    }

    package func accessToken(secretHash: String) async throws -> AccessToken? {
        try await read(.short) { db in try AccessTokenRow(db).fetch("secret_hash = :hash", ["hash": secretHash]).first }
    }

    package func tokenNames(of ids: Set<Int64>) async throws -> [Int64: String] {
        try await read(.short) { db in
            let rows = AccessTokenRow(db)
            return try ids.reduce(into: [:]) { names, id in
                names[id] = try rows.fetch("id = :id", ["id": id]).first?.nameOfHolder
            }
        }
    }

    package func hasAccessTokens() async throws -> Bool {
        try await read(.short) { db in
            try Bool.fetchOne(
                db,
                sql: """
                    SELECT EXISTS (
                        SELECT 1 FROM access_token
                        WHERE revoked_at IS NULL AND substr(name, 1, length(:link)) <> :link
                    )
                    """, arguments: ["link": AccessToken.linkPrefix]) ?? false
        }
    }

    package func revokeAccessToken(_ text: String, by actor: Actor, now: Timestamp) async throws -> AccessToken {
        try await writeDurably { db in
            let rows = AccessTokenRow(db)
            let found = try Int64(text).map { try rows.fetch("id = :id", ["id": $0]).first } ?? rows.named(text)
            guard var token = found else { throw StoreError.noSuchAccessToken(text) }
            guard token.revokedAt == nil else { return token }
            try rows.revoke(token.id, now: now)
            token.revokedAt = now
            try EventLog.record(db, kind: .tokenRevoked, run: nil, actor: actor, detail: token.words, now: now)
            return token
        }
    }

    package func markAccessTokenUsed(_ id: Int64, now: Timestamp) async throws {
        try await write { db in
            try db.execute(
                sql: "UPDATE access_token SET last_used_at = max(coalesce(last_used_at, :now), :now) WHERE id = :id",
                arguments: ["id": id, "now": now.milliseconds])
        }
    }

    package func createSession(_ session: WebSession, secretHash: String, by actor: Actor) async throws -> Bool {
        try await write { db in
            if let token = session.token {
                let found = try AccessTokenRow(db).fetch("id = :id", ["id": token]).first
                guard found?.isGood(at: session.createdAt) ?? false else { return false }
            }
            try WebSessionRow.insert(session, secretHash: secretHash, db)
            try EventLog.record(
                db, kind: .signedIn, run: nil, actor: actor, detail: "\(session.name), \(session.role.rawValue)",
                now: session.createdAt)
            return true
        }
    }

    package func session(secretHash: String) async throws -> WebSession? {
        try await read(.short) { db in try WebSessionRow.fetch(secretHash, db) }
    }

    package func extendSession(secretHash: String, to moment: Timestamp) async throws {
        try await write { db in
            try db.execute(
                sql: "UPDATE web_session SET expires_at = min(:moment, ends_at) WHERE secret_hash = :hash",
                arguments: ["hash": secretHash, "moment": moment.milliseconds])
        }
    }

    package func removeSession(secretHash: String) async throws {
        try await write { db in
            try db.execute(
                sql: "DELETE FROM web_session WHERE secret_hash = :hash", arguments: ["hash": secretHash])
        }
    }

    package func removeExpiredSessions(now: Timestamp) async throws -> Int {
        try await write { db in
            try db.execute(
                sql: "DELETE FROM web_session WHERE expires_at <= :now", arguments: ["now": now.milliseconds])
            return db.changesCount
        }
    }
}

/// Rows of `access_token`.
private struct AccessTokenRow {
    private let db: Database

    init(_ db: Database) { self.db = db }

    /// All that can be read.
    func list() throws -> [AccessToken] { try ReadableRows.of(rows("TRUE ORDER BY id", [:]), Self.token) }

    /// `condition` is one of our own texts, its values named parameters.
    func fetch(_ condition: String, _ arguments: StatementArguments) throws -> [AccessToken] {
        try rows(condition, arguments).map(Self.token)
    }

    private func rows(_ condition: String, _ arguments: StatementArguments) throws -> [Row] {
        try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT id, name, role, topic, created_at, created_by, expires_at, revoked_at, last_used_at
                    FROM access_token WHERE \(condition)
                    """), arguments: arguments)
    }

    /// The one of this name that is not revoked.
    func named(_ name: String) throws -> AccessToken? {
        try fetch("name = :name AND revoked_at IS NULL", ["name": name]).first
    }

    /// Whether any token has, or had, this name.
    func isTaken(_ name: String) throws -> Bool {
        try !fetch("name = :name LIMIT 1", ["name": name]).isEmpty
    }

    func insert(_ token: AccessToken, secretHash: String) throws -> AccessToken {
        try db.execute(
            sql: """
                INSERT INTO access_token (secret_hash, name, role, topic, created_at, created_by, expires_at)
                VALUES (:hash, :name, :role, :topic, :created_at, :created_by, :expires_at)
                """,
            arguments: [
                "hash": secretHash, "name": token.name, "role": token.role.rawValue, "topic": token.topic,
                "created_at": token.createdAt.milliseconds, "created_by": token.createdBy,
                "expires_at": token.expiresAt?.milliseconds,
            ])
        var made = token
        made.id = db.lastInsertedRowID
        return made
    }

    /// Its sessions end with it.
    func revoke(_ token: Int64, now: Timestamp) throws {
        try db.execute(
            sql: "UPDATE access_token SET revoked_at = :now WHERE id = :token",
            arguments: ["token": token, "now": now.milliseconds])
        try db.execute(sql: "DELETE FROM web_session WHERE token_id = :token", arguments: ["token": token])
    }

    private static func token(_ row: Row) throws -> AccessToken {
        AccessToken(
            id: row[0], name: row[1], role: try AccessRole(stored: row[2]), topic: row[3],
            createdAt: Timestamp(milliseconds: row[4]), createdBy: row[5], expiresAt: Timestamp(stored: row[6]),
            revokedAt: Timestamp(stored: row[7]), lastUsedAt: Timestamp(stored: row[8]))
    }
}

/// Rows of `web_session`.
private enum WebSessionRow {
    static func fetch(_ hash: String, _ db: Database) throws -> WebSession? {
        try Row.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT name, role, topic, token_id, created_at, expires_at, ends_at
                    FROM web_session WHERE secret_hash = :hash
                    """), arguments: ["hash": hash]
        ).map { row in
            WebSession(
                name: row[0], role: try AccessRole(stored: row[1]), topic: row[2], token: row[3],
                createdAt: Timestamp(milliseconds: row[4]), expiresAt: Timestamp(milliseconds: row[5]),
                endsAt: Timestamp(milliseconds: row[6]))
        }
    }

    static func insert(_ session: WebSession, secretHash: String, _ db: Database) throws {
        try db.execute(
            sql: """
                INSERT INTO web_session (secret_hash, token_id, name, role, topic, created_at, expires_at, ends_at)
                VALUES (:hash, :token, :name, :role, :topic, :created_at, :expires_at, :ends_at)
                """,
            arguments: [
                "hash": secretHash, "token": session.token, "name": session.name, "role": session.role.rawValue,
                "topic": session.topic, "created_at": session.createdAt.milliseconds,
                "expires_at": session.expiresAt.milliseconds, "ends_at": session.endsAt.milliseconds,
            ])
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
    /// For the audit.
    fileprivate var words: String {
        "\(name): \(role.rawValue)" + (topic.map { " for \($0)" } ?? "")
            + (expiresAt.map { ", until \($0.iso8601)" } ?? "")
    }
}
