/// The migration that adds the secrets with which installations report by themselves; see ``Store/FeedbackLog``.
///
/// The text is frozen on release.
package enum InstallationSecretSchema {
    package static func sql(_ dialect: SQLDialect) -> String {
        let (integer, bytes) = (dialect.word("INTEGER", "bigint"), dialect.word("BLOB", "bytea"))
        let owner = dialect.word(" REFERENCES device (id) ON DELETE CASCADE", "")
        return """
            CREATE TABLE installation_secret (
                device_id \(integer) PRIMARY KEY\(owner),
                -- SHA-256 of the secret, which only the installation has.
                secret_hash \(bytes) NOT NULL UNIQUE,
                made_at \(integer) NOT NULL
            )\(dialect.word(" STRICT", ""));

            """
    }
}
