/// The migration that records which runs were open in a restored backup; see ``Store/RestoredRun``.
///
/// The text is frozen on release.
package enum RestoredRunSchema {
    package static func sql(_ dialect: SQLDialect) -> String {
        """
        -- JSON of RestoredRun. NULL if the run was not open in a restored backup.
        ALTER TABLE run ADD COLUMN restored \(dialect.word("TEXT", "text COLLATE \"C\""));

        """
    }
}
