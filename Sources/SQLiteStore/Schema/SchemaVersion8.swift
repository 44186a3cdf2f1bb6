/// The profile, stage and doubts of a delivery, in the analysts' view. Frozen, like ``SchemaVersion1``.
enum SchemaVersion8 {
    static let sql = """
        DROP VIEW delivery_view;
        CREATE VIEW delivery_view AS SELECT run_id, run.campaign AS campaign, run.occurrence AS occurrence, device_id,
        CASE environment WHEN 0 THEN 'production' ELSE 'sandbox' END AS environment,
        CASE delivery.state
            WHEN 0 THEN 'pending' WHEN 1 THEN 'accepted' WHEN 2 THEN 'rejected' WHEN 3 THEN 'unknown'
            ELSE 'suppressed'
        END AS state,
        delivery.status AS status, delivery.reason AS reason, delivery.attempt AS attempts,
        json_extract(run.definition, '$.campaign.variants[' || delivery.variant || '].name') AS variant,
        delivery.changed_at AS changed_at,
        json_extract(
            coalesce(
                run.definition -> '$.variantTemplates'
                    -> json_extract(run.definition, '$.campaign.variants[' || delivery.variant || '].name'),
                run.definition -> '$.template'
            ),
            '$.alert.localized._0[' || delivery.locale_index || '].locale'
        ) AS text_locale,
        nullif(delivery_profile.locale, '') AS locale, nullif(delivery_profile.app_version, '') AS app_version,
        nullif(delivery_profile.time_zone, '') AS time_zone, nullif(delivery_profile.country, '') AS country,
        delivery.wave AS wave_at,
        CASE
            WHEN delivery.stage IS NOT NULL THEN delivery.stage + 1
            WHEN delivery.state = 4 AND delivery.attempt = 0 AND delivery.reason IN (
                    'token_gone', 'wrong_environment', 'alerts_not_allowed', 'holdout', 'late', 'unknown_zone',
                    'duplicate_of_user'
                )
                THEN NULL
            ELSE nullif(json_array_length(run.definition, '$.campaign.stages'), 0)
        END AS stage,
        delivery.doubts AS doubts
        FROM delivery JOIN run ON run.id = delivery.run_id
        LEFT JOIN delivery_profile ON delivery_profile.id = delivery.profile
        WHERE run.is_test = 0;

        """
}
