import Model
import RelationalStore
import Store

/// The views of the store that analysts may read, under the names of ``AnalystViewNames``. They show no tokens and
/// no numeric codes, and a query needs no joins for them. Times are milliseconds UTC. Their columns are:
///
/// - `device_view`: id, topic, environment, status, status_reason, installation_id, user_id, locale, time_zone,
///   country, app_version, os_version, model, alerts_allowed, badge, registered_at, last_seen_at, attributes (JSON),
///   app_version_key and os_version_key. The keys compare in version order.
/// - `tag_view`: device_id, tag.
/// - `segment_view`: segment, device_id. It has imported segments only; defined segments hold no devices.
/// - `delivery_view`: run_id, campaign, occurrence, device_id, environment, state, status, reason, attempts, variant,
///   changed_at, text_locale, locale, app_version, time_zone, country, wave_at, stage, doubts. Test runs are left out.
/// - `run_view`: id, campaign, occurrence, state, is_test, created_at, started_at, finished_at, holdout_seed,
///   variant_seed.
///
/// `state` is pending (also while in flight), accepted, rejected, unknown or suppressed. `locale`, `app_version`,
/// `time_zone` and `country` are the device's values at the freeze. `text_locale` is the locale of the chosen text,
/// and `stage` counts from 1. Each of these values is NULL if it is unknown or does not exist.
///
/// `doubts` counts the attempts whose response was lost. If it is above 0, the push may have arrived, whatever the
/// `state`. The seeds are those of ``CampaignSplit``.
///
/// A store also has these views for a SQLite shell. Its migrations create them and are frozen. A change here needs a
/// migration that recreates them.
struct AnalystView {
    let name: String
    private let columns: String
    private let tables: [String]
    private let rest: String

    private init(_ name: String, _ columns: String, from tables: String..., rest: String = "") {
        self.name = name
        self.columns = columns
        self.tables = tables
        self.rest = rest
    }

    /// Returns a view of the rows of one app. In all other rows, a column that is not a key reads as NULL. Otherwise
    /// a value of another app could make a query fail or take long, because SQLite may evaluate an expression of the
    /// query before the condition.
    ///
    /// - Parameters:
    ///   - inner: the view of all apps.
    ///   - columns: the names of the inner view's columns.
    ///   - condition: an SQL condition on these columns.
    static func confined(_ inner: String, _ columns: [String], to condition: String) -> String {
        let columns = columns.map { keys.contains($0) ? $0 : "CASE WHEN \(condition) THEN \($0) END AS \($0)" }
        return "SELECT \(columns.joined(separator: ", ")) FROM \(inner) WHERE \(condition)"
    }

    private static let keys: Set<String> = ["id", "device_id", "run_id"]

    /// - Parameter schema: empty, or `main.`.
    func select(from schema: String) -> String {
        "SELECT \(columns) FROM \(tables.map { schema + $0 }.joined(separator: " ")) \(rest)"
    }

    static let all = [device, tag, segment, delivery, run]

    private static let environment = SQLConstants.environment("environment") + " AS environment"
    private static let status = SQLConstants.word(
        of: "status", DeviceStatus.allCases.map { ($0.code, $0.rawValue) })

    /// SQLite leaves out the outer join if the query does not read the topic.
    private static let device = AnalystView(
        "device_view",
        """
        device.id AS id, topic.name AS topic, \(environment),
        \(status) AS status, status_reason,
        installation_id, user_id, locale, time_zone, country, app_version, app_version_key, os_version, os_version_key,
        model, alerts_allowed, badge, registered_at, last_seen_at, attributes
        """, from: "device LEFT JOIN", "topic ON topic.id = device.topic_id")

    private static let tag = AnalystView("tag_view", "device_id, name AS tag", from: "tag")

    private static let segment = AnalystView(
        "segment_view", "segment.name AS segment, segment_member.device_id AS device_id",
        from: "segment_member JOIN", "segment ON segment.id = segment_member.segment_id")

    private static let delivery = AnalystView(
        "delivery_view",
        """
        run_id, run.campaign AS campaign, run.occurrence AS occurrence, device_id, \(environment),
        \(SQLConstants.word(of: "delivery.state", DeliveryState.allCases.map { ($0.code, $0.name) })) AS state,
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
            WHEN \(frozenOut)
                THEN NULL
            ELSE nullif(json_array_length(run.definition, '$.campaign.stages'), 0)
        END AS stage,
        delivery.doubts AS doubts
        """, from: "delivery JOIN", "run ON run.id = delivery.run_id LEFT JOIN",
        "delivery_profile ON delivery_profile.id = delivery.profile", rest: "WHERE run.is_test = 0")

    /// The condition for a delivery that the freeze suppressed. Such a delivery is in no stage, as in
    /// ``DeliveryBreakdown``.
    private static let frozenOut =
        "delivery.state = \(DeliveryState.suppressed.rawValue) AND delivery.attempt = 0 AND delivery.reason IN ("
        + SQLConstants.list(FreezePolicy.reasons.map(\.rawValue)) + ")"

    private static let run = AnalystView(
        "run_view",
        """
        id, campaign, occurrence, state, is_test, created_at, started_at, finished_at, holdout_seed, variant_seed
        """, from: "run")
}
