/// The migration that adds what apps report; see ``Store/FeedbackLog``.
///
/// The text is frozen on release.
package enum FeedbackSchema {
    package static func sql(_ dialect: SQLDialect) -> String {
        let (integer, small) = (dialect.word("INTEGER", "bigint"), dialect.word("INTEGER", "smallint"))
        let text = dialect.word("TEXT", "text COLLATE \"C\"")
        // On PostgreSQL a foreign key would lock the device's row for every event.
        let owner = dialect.word(" REFERENCES device (id) ON DELETE CASCADE", "")
        return """
            -- One row for each event. The order keeps all events of a device together.
            CREATE TABLE feedback_event (
                device_id \(integer) NOT NULL\(owner),
                -- 0 if the event names no push.
                run_id \(integer) NOT NULL,
                kind \(small) NOT NULL,
                name \(text) NOT NULL,
                -- The two halves of the event's id. 0 if the event names a push, which then has one event of a kind.
                id_high \(integer) NOT NULL,
                id_low \(integer) NOT NULL,
                value_micros \(integer),
                happened_at \(integer) NOT NULL,
                received_at \(integer) NOT NULL,
                PRIMARY KEY (device_id, run_id, kind, name, id_high, id_low)
            )\(dialect.word(" STRICT, WITHOUT ROWID", ""));
            CREATE INDEX feedback_event_received_at ON feedback_event (received_at);

            -- The events of each run, counted when they were recorded. They outlive the events.
            CREATE TABLE feedback_count (
                run_id \(integer) NOT NULL,
                kind \(small) NOT NULL,
                name \(text) NOT NULL,
                -- -1 for none.
                variant \(small) NOT NULL,
                locale_index \(small) NOT NULL,
                -- Minutes since the push was accepted.
                minute \(integer) NOT NULL,
                events \(integer) NOT NULL,
                value_micros \(integer) NOT NULL,
                PRIMARY KEY (run_id, kind, name, variant, locale_index, minute)
            )\(dialect.word(" STRICT, WITHOUT ROWID", ""));

            """
    }
}
