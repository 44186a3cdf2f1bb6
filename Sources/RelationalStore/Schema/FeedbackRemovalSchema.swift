/// The migration that records which reports of apps were deleted; see ``Store/FeedbackRemoval``.
///
/// The text is frozen on release.
package enum FeedbackRemovalSchema {
    package static func sql(_ dialect: SQLDialect) -> String {
        let integer = dialect.word("INTEGER", "bigint")
        return """
            -- The latest deletion of events past their retention. No row before the first one.
            CREATE TABLE feedback_removal (
                id \(integer) PRIMARY KEY CHECK (id = 1),
                -- The newest receipt of all events that were deleted.
                received_until \(integer) NOT NULL,
                -- Events that were received before this time were to be deleted.
                received_before \(integer) NOT NULL,
                removed_at \(integer) NOT NULL
            )\(dialect.word(" STRICT", ""));

            """
    }
}
