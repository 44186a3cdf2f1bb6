/// The migration that adds the analysts' views of reports and of the timeline. Their columns
/// have the names of the older views. An `audience_sql` does not read these views.
///
/// The text is frozen on release.
package enum FeedbackViewSchema {
    package static func sql(_ dialect: SQLDialect) -> String {
        let value = dialect.word("value_micros / 1000000.0", "CAST(value_micros / 1000000.0 AS numeric(19, 6))")
        let isTest = dialect.word("run.is_test = 1", "run.is_test")
        return """
            CREATE VIEW event_view AS
            SELECT device_id, nullif(run_id, 0) AS run_id,
                CASE kind
                    WHEN 1 THEN 'arrived' WHEN 2 THEN 'opened' WHEN 3 THEN 'action' WHEN 4 THEN 'dismissed'
                    WHEN 5 THEN 'converted' WHEN 6 THEN 'alerts_on' WHEN 7 THEN 'alerts_off' WHEN 8 THEN 'app_started'
                END AS type,
                nullif(name, '') AS name, \(value) AS value, happened_at, received_at
            FROM feedback_event;

            CREATE VIEW timeline_view AS
            SELECT timeline.run_id AS run_id, run.campaign AS campaign, timeline.slot * 10000 AS starts_at, 10 AS seconds,
                timeline.accepted AS accepted, timeline.rejected AS rejected, timeline.unknown AS unknown,
                timeline.suppressed AS suppressed, timeline.retried AS retried
            FROM timeline JOIN run ON run.id = timeline.run_id
            WHERE NOT (\(isTest));

            """
    }
}
