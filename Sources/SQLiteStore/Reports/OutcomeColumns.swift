import Store
import Model

/// The columns of an outcome, read from `delivery` and its `device`.
enum OutcomeColumns {
    static let sql = """
        delivery.device_id, device.installation_id, lower(hex(substr(device.token, -4))), delivery.environment,
        device.locale, delivery.state, delivery.status, delivery.reason, delivery.attempt, delivery.changed_at,
        delivery.generation, delivery.variant
        """

    static func outcome(_ rows: RowStatement) -> OutcomeRow {
        let state = DeliveryState(rawValue: rows.int(5)) ?? .unknown
        let end = rows.text(2)
        return OutcomeRow(
            device: rows.int64(0), installationID: rows.text(1), tokenEnd: end == "" ? nil : end,
            environment: PushEnvironment(code: rows.int64(3)), locale: rows.text(4), state: state, status: rows.int(6),
            reason: rows.text(7), attempts: rows.int(8),
            settledAt: state == .pending ? nil : Timestamp(milliseconds: rows.int64(9)), generation: rows.int(10),
            variant: rows.int64OrNil(11).map(Int.init))
    }

    /// Behind the others, for ``delivery(_:)``.
    static let deliverySQL =
        sql
            + """
            , run.id, run.campaign, run.occurrence, run.is_test, delivery.not_before, delivery.doubts, delivery.held_for,
            delivery.held_until
            """

    static func delivery(_ rows: RowStatement) -> DeviceDelivery {
        let outcome = outcome(rows)
        let notBefore = rows.int64OrNil(16)
        return DeviceDelivery(
            run: rows.int64(12), campaign: rows.text(13) ?? "", occurrence: rows.text(14) ?? "",
            isTest: rows.int64(15) != 0, outcome: outcome,
            notBefore: notBefore == LeaseTransaction.inFlight || outcome.state != .pending
                ? nil : Timestamp(stored: notBefore),
            isLeased: false, doubts: rows.int(17), heldFor: rows.text(18).flatMap(SuppressionReason.init),
            heldUntil: Timestamp(stored: rows.int64OrNil(19)))
    }
}
