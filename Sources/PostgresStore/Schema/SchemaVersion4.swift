/// More columns of deliveries in the analysts' view, and indexes of runs by state. Frozen, like ``SchemaVersion1``.
enum SchemaVersion4 {
    static let sql = """
        -- New columns stand last, so that the view is replaced and keeps its grants.
        CREATE OR REPLACE VIEW delivery_view WITH (security_barrier = true) AS
        SELECT run_id, run.campaign AS campaign, run.occurrence AS occurrence, device_id,
            CASE environment WHEN 0 THEN 'production' ELSE 'sandbox' END AS environment,
            CASE delivery.state
                WHEN 0 THEN 'pending' WHEN 1 THEN 'accepted' WHEN 2 THEN 'rejected' WHEN 3 THEN 'unknown'
                ELSE 'suppressed'
            END AS state,
            delivery.status AS status, delivery.reason AS reason, delivery.attempt AS attempts,
            run.definition::json -> 'campaign' -> 'variants' -> delivery.variant::integer ->> 'name' AS variant,
            delivery.changed_at AS changed_at,
            coalesce(
                run.definition::json -> 'variantTemplates'
                    -> (run.definition::json -> 'campaign' -> 'variants' -> delivery.variant::integer ->> 'name'),
                run.definition::json -> 'template'
            ) -> 'alert' -> 'localized' -> '_0' -> delivery.locale_index::integer ->> 'locale' AS text_locale,
            nullif(delivery_profile.locale, '') AS locale, nullif(delivery_profile.app_version, '') AS app_version,
            nullif(delivery_profile.time_zone, '') AS time_zone, nullif(delivery_profile.country, '') AS country,
            delivery.wave AS wave_at,
            CASE
                WHEN delivery.stage IS NOT NULL THEN delivery.stage + 1
                WHEN delivery.state = 4 AND delivery.attempt = 0 AND delivery.reason IN (
                    'token_gone', 'wrong_environment', 'alerts_not_allowed', 'holdout', 'late', 'unknown_zone',
                    'duplicate_of_user'
                ) THEN NULL
                WHEN json_typeof(run.definition::json #> '{campaign,stages}') = 'array'
                    THEN nullif(json_array_length(run.definition::json #> '{campaign,stages}'), 0)
            END AS stage,
            delivery.doubts AS doubts
        FROM delivery JOIN run ON run.id = delivery.run_id
        LEFT JOIN delivery_profile ON delivery_profile.id = delivery.profile
        WHERE NOT run.is_test AND coalesce(
            run.definition::json #>> '{campaign,topic}'
                = ANY (nullif(current_setting('fanfare.topics', true), '')::text[]),
            nullif(current_setting('fanfare.topics', true), '') IS NULL
        );

        -- A store of some years has tens of thousands of runs, of which a few are open.
        CREATE INDEX run_state ON run (state, id);
        CREATE INDEX run_owned ON run (id) WHERE owner IS NOT NULL;
        CREATE INDEX run_ending ON run (id) WHERE state = 'cancelled' AND finished_at IS NULL;
        CREATE INDEX run_campaign_state ON run (campaign, state, id) WHERE NOT is_test;

        """
}
