/// The part of a migration that adds invitations to access tokens; see ``Store/AccessLog``.
///
/// The text is frozen on release.
package enum InvitationSchema {
    package static func sql(_ dialect: SQLDialect) -> String {
        """
        -- Whether the row is an invitation that no person has accepted. Its secret authenticates no caller.
        ALTER TABLE access_token
            ADD COLUMN is_invitation \(dialect.word("INTEGER NOT NULL DEFAULT 0", "boolean NOT NULL DEFAULT false"));

        """
    }
}
