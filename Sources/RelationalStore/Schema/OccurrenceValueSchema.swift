/// The migration that adds the values of single starts of a schedule; see ``Store/OccurrenceValueLog``.
///
/// The text is frozen on release.
package enum OccurrenceValueSchema {
    package static func sql(_ dialect: SQLDialect) -> String {
        """
        CREATE TABLE occurrence_values (
            campaign \(dialect.word("TEXT", "text COLLATE \"C\"")) NOT NULL,
            occurrence \(dialect.word("TEXT", "text COLLATE \"C\"")) NOT NULL,
            starts_at \(dialect.word("INTEGER", "bigint")) NOT NULL,
            -- The values by the variables' names, as JSON.
            variables \(dialect.word("TEXT", "text COLLATE \"C\"")) NOT NULL,
            given_at \(dialect.word("INTEGER", "bigint")) NOT NULL,
            given_by \(dialect.word("TEXT", "text COLLATE \"C\"")) NOT NULL,
            -- The person's account.
            giver \(dialect.word("TEXT", "text COLLATE \"C\"")) NOT NULL,
            PRIMARY KEY (campaign, occurrence)
        )\(dialect.word(" STRICT", ""));
        CREATE INDEX occurrence_values_starts_at ON occurrence_values (starts_at);

        """
    }
}
