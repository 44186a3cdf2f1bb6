/// The migration that records a proven first token as a bit instead of a row; see ``ProvenTokens``.
///
/// The text is frozen on release.
package enum ProvenFirstSchema {
    package static func sql(_ dialect: SQLDialect) -> String {
        """
        -- The bit (device_id & 63) of the row (device_id >> 6): APNs has accepted a push for the device's first token.
        CREATE TABLE proven_first (
            block \(dialect.word("INTEGER", "bigint")) PRIMARY KEY,
            bits \(dialect.word("INTEGER", "bigint")) NOT NULL
        ) \(dialect.word("STRICT", "WITH (fillfactor = 50)"));
        INSERT INTO proven_first (block, bits)
        SELECT device_id >> 6, CAST(sum(CAST(1 AS bigint) << CAST(device_id & 63 AS integer)) AS bigint)
        FROM proven_token WHERE token_generation = 1 GROUP BY device_id >> 6;
        -- What is left are tokens that replaced an earlier one.
        DELETE FROM proven_token WHERE token_generation = 1;

        """
    }
}
