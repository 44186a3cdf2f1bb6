import Model
import Store

/// The columns of an outcome, read from `delivery` and its `device`.
enum OutcomeColumns {
    static let sql = """
        delivery.device_id, device.installation_id, encode(substr(device.token, greatest(length(device.token) - 3, 1)), 'hex'),
        delivery.environment,
        CASE WHEN delivery.profile IS NULL THEN device.locale
            ELSE (SELECT nullif(locale, '') FROM delivery_profile WHERE id = delivery.profile) END,
        delivery.state, delivery.status, delivery.reason, delivery.attempt,
        delivery.changed_at, delivery.generation, delivery.variant, delivery.locale_index,
        (SELECT nullif(app_version, '') FROM delivery_profile WHERE id = delivery.profile), delivery.doubts
        """
    /// Where further columns begin.
    static let count = 15

    static func outcome(_ row: PostgresRow) throws -> OutcomeRow {
        let state = DeliveryState(code: try row.int64(5))
        return OutcomeRow(
            device: try row.int64(0), installationID: try row.textOrNil(1), tokenEnd: try row.textOrNil(2),
            environment: PushEnvironment(code: try row.int64(3)), locale: try row.textOrNil(4), state: state,
            status: try row.int(6), reason: try row.textOrNil(7), attempts: try row.int(8), doubts: try row.int(14),
            settledAt: state == .pending ? nil : try row.timestamp(9), generation: try row.int(10),
            variant: try row.intOrNil(11), localeIndex: try row.intOrNil(12), appVersion: try row.textOrNil(13))
    }
}
