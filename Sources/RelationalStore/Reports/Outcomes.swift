import Model
package import Store

extension RelationalStore {
    package func outcomes(
        run: Int64, batch: @escaping @Sendable ([OutcomeRow]) throws -> Void
    ) async throws -> Int {
        try await snapshot(.expensive) { db in
            if let moment = try OutcomeSummary(db, run).prunedAt() {
                throw StoreError.outcomesPruned(run: run, at: moment)
            }
            guard try db.hasDeliveries(of: run) else { return 0 }
            return try db.batches(
                """
                SELECT \(OutcomeColumns<Session>.sql)
                FROM \(Session.dialect.deliveries(of: run, as: "delivery"))
                LEFT JOIN device ON device.id = delivery.device_id
                WHERE \(Session.dialect.isOf(parameter: 1)) ORDER BY delivery.device_id
                """, values: [run],
                read: OutcomeColumns<Session>.outcome, batch: batch)
        }
    }

    package func reached(by run: Int64) async throws -> ReachedDevices {
        try await snapshot(.expensive) { db in
            let none = ReachedDevices(all: 0, gone: 0, production: 0)
            guard try db.hasDeliveries(of: run) else { return none }
            return try db.first(
                """
                SELECT count(*), count(*) FILTER (WHERE device.id IS NULL),
                    count(*) FILTER (WHERE device.environment = \(PushEnvironment.production.code))
                FROM \(Session.dialect.deliveries(of: run, as: "sent")) LEFT JOIN device ON device.id = sent.device_id
                WHERE \(Session.dialect.isOf(parameter: 1)) AND \(ReachedDelivery.condition)
                """, run
            ) { ReachedDevices(all: try $0.int(0), gone: try $0.int(1), production: try $0.int(2)) } ?? none
        }
    }

    package func waves(_ run: Int64) async throws -> [WaveShare] {
        try await snapshot(.expensive) { db in
            guard try db.hasDeliveries(of: run) else { return [] }
            return try db.all(
                """
                SELECT delivery.wave,
                    CASE WHEN delivery.profile IS NULL THEN device.time_zone
                        ELSE nullif(delivery_profile.time_zone, '') END AS zone,
                    count(*) AS deliveries
                FROM \(Session.dialect.deliveries(of: run, as: "delivery"))
                LEFT JOIN device ON device.id = delivery.device_id
                LEFT JOIN delivery_profile ON delivery_profile.id = delivery.profile
                WHERE \(Session.dialect.isOf(parameter: 1)) AND delivery.wave IS NOT NULL AND NOT \(FrozenOut.condition)
                GROUP BY delivery.wave, zone
                ORDER BY delivery.wave, deliveries DESC, zone NULLS FIRST
                """, run
            ) { row in
                WaveShare(startsAt: try row.timestamp(0), zone: try row.textOrNil(1), deliveries: try row.int(2))
            }
        }
    }
}

/// The devices that the freeze left out. They have a wave, from which their events are counted, and no part in it.
package enum FrozenOut {
    /// The condition that the freeze may have left the device of `delivery` out.
    package static let condition = """
        (delivery.state = \(DeliveryState.suppressed.code)
            AND delivery.reason IN (\(SQLConstants.list(FreezePolicy.reasons.map(\.rawValue)))))
        """
}

package enum ReachedDelivery {
    /// The condition that the push of the delivery `sent` arrived or may have arrived.
    package static let condition =
        "(sent.doubts > 0 OR sent.state IN (\(SQLConstants.list([.accepted, .unknown] as [DeliveryState]))))"
}

/// The columns of an outcome, read from `delivery` and its `device`.
package enum OutcomeColumns<Session: SQLSession> {
    package static var sql: String {
        """
        delivery.device_id, device.installation_id, \(Session.dialect.hexOfLast(4, of: "device.token")),
        delivery.environment,
        CASE WHEN delivery.profile IS NULL THEN device.locale
            ELSE (SELECT nullif(locale, '') FROM delivery_profile WHERE id = delivery.profile) END,
        delivery.state, delivery.status, delivery.reason, delivery.attempt,
        delivery.changed_at, delivery.generation, delivery.variant, delivery.locale_index,
        (SELECT nullif(app_version, '') FROM delivery_profile WHERE id = delivery.profile), delivery.doubts
        """
    }
    /// The number of columns, which is also the index of the first column after them.
    package static var count: Int { 15 }

    package static func outcome(_ row: Session.Fields) throws -> OutcomeRow {
        let state = DeliveryState(code: try row.int64(5))
        let end = try row.textOrNil(2)
        return OutcomeRow(
            device: try row.int64(0), installationID: try row.textOrNil(1), tokenEnd: end == "" ? nil : end,
            environment: PushEnvironment(code: try row.int64(3)), locale: try row.textOrNil(4), state: state,
            status: try row.int(6), reason: try row.textOrNil(7), attempts: try row.int(8), doubts: try row.int(14),
            settledAt: state == .pending ? nil : try row.timestamp(9), generation: try row.int(10),
            variant: try row.intOrNil(11), localeIndex: try row.intOrNil(12), appVersion: try row.textOrNil(13))
    }
}
