import GRDB
import Model
package import Store

extension SQLiteFileStore {
    package func providerToken(of key: ProviderKey) async throws -> StoredProviderToken? {
        try await read(.short) { try ProviderTokenRow.fetch(key, $0) }
    }

    package func replaceProviderToken(
        _ known: StoredProviderToken?, with new: StoredProviderToken, of key: ProviderKey
    ) async throws -> StoredProviderToken {
        try await write { db in
            try ProviderTokenRow.put(new, of: key, after: known, db)
            try ProviderTokenRow.forget(signedBefore: new.signedAt - ProviderTokenRow.keptTime, besides: key, db)
            return try ProviderTokenRow.fetch(key, db) ?? new
        }
    }
}

/// The row of one key.
private enum ProviderTokenRow {
    /// Far longer than any token is of use.
    static let keptTime: Duration = .seconds(86_400)

    static func fetch(_ key: ProviderKey, _ db: Database) throws -> StoredProviderToken? {
        try Row.fetchOne(
            db,
            sql: """
                SELECT token, signed_at, held_until, boot_id, signed_after FROM provider_token
                WHERE team_id = :team AND key_id = :key AND fingerprint = :fingerprint
                """,
            arguments: arguments(key)
        ).map { row in
            StoredProviderToken(
                token: row[0], signedAt: Timestamp(milliseconds: row[1]), heldUntil: Timestamp(milliseconds: row[2]),
                bootID: row[3], sinceBoot: .milliseconds(row[4] as Int64))
        }
    }

    /// Does nothing where another process was faster: then neither token nor hold are those known.
    static func put(
        _ new: StoredProviderToken, of key: ProviderKey, after known: StoredProviderToken?, _ db: Database
    ) throws {
        try db.execute(
            sql: """
                INSERT INTO provider_token
                    (team_id, key_id, fingerprint, token, signed_at, held_until, boot_id, signed_after)
                VALUES (:team, :key, :fingerprint, :token, :signed_at, :held_until, :boot_id, :signed_after)
                ON CONFLICT DO UPDATE SET
                    token = excluded.token, signed_at = excluded.signed_at, held_until = excluded.held_until,
                    boot_id = excluded.boot_id, signed_after = excluded.signed_after
                WHERE token = :known_token AND held_until = :known_held_until
                """,
            arguments: arguments(key) + [
                "token": new.token, "signed_at": new.signedAt.milliseconds,
                "held_until": new.heldUntil.milliseconds, "boot_id": new.bootID,
                "signed_after": new.sinceBoot.wholeMilliseconds, "known_token": known?.token,
                "known_held_until": known?.heldUntil.milliseconds,
            ])
    }

    static func forget(signedBefore moment: Timestamp, besides key: ProviderKey, _ db: Database) throws {
        try db.execute(
            sql: """
                DELETE FROM provider_token
                WHERE signed_at < :moment
                    AND (team_id, key_id, fingerprint) IS NOT (:team, :key, :fingerprint)
                """,
            arguments: arguments(key) + ["moment": moment.milliseconds])
    }

    private static func arguments(_ key: ProviderKey) -> StatementArguments {
        ["team": key.teamID, "key": key.keyID, "fingerprint": key.fingerprint]
    }
}
