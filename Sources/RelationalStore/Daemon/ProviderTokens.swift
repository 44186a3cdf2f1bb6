import Model
package import Store

extension RelationalStore {
    package func providerToken(of key: ProviderKey) async throws -> StoredProviderToken? {
        try await snapshot(.short) { db in try ProviderTokenRow.fetch(key, db) }
    }

    package func replaceProviderToken(
        _ known: StoredProviderToken?, with new: StoredProviderToken, of key: ProviderKey
    ) async throws -> StoredProviderToken {
        try await transaction(.durable) { db in
            // Changes nothing if another process was faster. Then the stored token or hold differs from the known
            // one.
            try db.execute(
                """
                INSERT INTO provider_token (
                    team_id, key_id, fingerprint, token, signed_at, held_until, boot_id, signed_after
                ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                ON CONFLICT (team_id, key_id, fingerprint) DO UPDATE SET
                    token = excluded.token, signed_at = excluded.signed_at, held_until = excluded.held_until,
                    boot_id = excluded.boot_id, signed_after = excluded.signed_after
                WHERE provider_token.token = $9 AND provider_token.held_until = $10
                """, key.teamID, key.keyID, key.fingerprint, new.token, new.signedAt, new.heldUntil, new.bootID,
                new.sinceBoot.wholeMilliseconds, known?.token, known?.heldUntil)
            try db.execute(
                """
                DELETE FROM provider_token
                WHERE signed_at < $4 AND (team_id, key_id, fingerprint) IS DISTINCT FROM ($1, $2, $3)
                """, key.teamID, key.keyID, key.fingerprint, new.signedAt - ProviderTokenRow.keptTime)
            return try ProviderTokenRow.fetch(key, db) ?? new
        }
    }
}

/// The row of one key.
private enum ProviderTokenRow {
    /// The time for which a token is kept, which is much longer than the token is useful.
    static let keptTime: Duration = .seconds(86_400)

    static func fetch(_ key: ProviderKey, _ db: some SQLSession) throws -> StoredProviderToken? {
        try db.first(
            """
            SELECT token, signed_at, held_until, boot_id, signed_after FROM provider_token
            WHERE team_id = $1 AND key_id = $2 AND fingerprint = $3
            """, key.teamID, key.keyID, key.fingerprint
        ) { row in
            StoredProviderToken(
                token: try row.text(0), signedAt: try row.timestamp(1), heldUntil: try row.timestamp(2),
                bootID: try row.text(3), sinceBoot: .milliseconds(try row.int64(4)))
        }
    }
}
