/// The migration that adds notes to approvals, and webhook messages about them; see ``Store/ApprovalLog``.
///
/// The text is frozen on release.
package enum ApprovalNoteSchema {
    package static func sql(_ dialect: SQLDialect) -> String {
        """
        ALTER TABLE approval ADD COLUMN note \(dialect.word("TEXT", "text COLLATE \"C\""));
        CREATE INDEX approval_newest ON approval (digest, id);
        CREATE INDEX approval_run ON approval (run_id) WHERE run_id IS NOT NULL;
        -- The approval that the message is about; NULL for a message about a run.
        ALTER TABLE webhook_message ADD COLUMN approval_id \(dialect.word("INTEGER", "bigint"));

        """
    }
}
