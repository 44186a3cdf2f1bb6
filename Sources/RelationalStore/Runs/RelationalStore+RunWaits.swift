package import Model
package import Store

extension RelationalStore {
    package func waits(of run: Int64, now: Timestamp) async throws -> RunWaits {
        try await snapshot(.short) { db in
            var waits = RunWaits()
            if try db.hasDeliveries(of: run) {
                let waiting = WaitingDeliveries(db, run: run, now: now)
                waits = RunWaits(try PushEnvironment.allCases.map { try waiting.nearest($0) })
            }
            waits.holds = try EndpointHolds.read(db, run: run, whileOwned: true)
            return waits
        }
    }

    package func setHolds(_ holds: [EndpointHold], run: Int64, owner: String) async throws {
        try await transaction(.quick) { db in
            try RunOwner.require(owner, of: run, db)
            try db.replaceHolds(of: run, by: owner, holds)
        }
    }

    package func holds(of run: Int64) async throws -> [EndpointHold] {
        try await snapshot(.short) { db in try EndpointHolds.read(db, run: run, whileOwned: false) }
    }
}

/// Reads the deliveries that are not yet due, by their index. It returns those that are due next. For the last
/// moment among them, it also counts the deliveries, up to ``WaitingDelivery/countMax``.
package struct WaitingDeliveries<Session: SQLSession> {
    private let db: Session
    private let run: Int64
    private let now: Timestamp

    init(_ db: Session, run: Int64, now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    func nearest(_ environment: PushEnvironment) throws -> NearestWaiting {
        try NearestWaiting(try entries(environment)) { moment in
            (
                atMoment: try count(environment, "=", moment, limit: WaitingDelivery.countMax + 1),
                later: try count(environment, ">", moment, limit: 1)
            )
        }
    }

    /// The condition for the run in `$1` and the environment in `$2`. It repeats the condition of SQLite's partial
    /// index.
    private static var waiting: String {
        """
        \(Session.dialect.isOf(parameter: 1)) AND delivery.environment = $2
            AND delivery.state = \(DeliveryState.pending.code) AND delivery.not_before IS NOT NULL
            AND delivery.not_before < \(NotBefore.heldFrom)
        """
    }

    package static func nearestSQL(_ run: Int64) -> SQLStatement {
        """
        SELECT delivery.not_before, delivery.reason, delivery.wave, device.time_zone
        FROM \(Session.dialect.deliveries(of: run, as: "delivery", "INDEXED BY delivery_waiting"))
        LEFT JOIN device ON device.id = delivery.device_id AND delivery.wave = delivery.not_before
        WHERE \(waiting) AND delivery.not_before > $3
        ORDER BY delivery.not_before LIMIT \(WaitingDelivery.readMax)
        """
    }

    private func entries(_ environment: PushEnvironment) throws -> [WaitingDelivery] {
        try db.all(Self.nearestSQL(run), run, environment.code, now) { row in
            let moment = try row.timestamp(0)
            return WaitingDelivery(
                moment: moment, reason: try row.textOrNil(1), isWaveStart: try row.timestampOrNil(2) == moment,
                zone: try row.textOrNil(3))
        }
    }

    private func count(
        _ environment: PushEnvironment, _ comparison: String, _ moment: Timestamp, limit: Int
    ) throws -> Int {
        try db.first(
            """
            SELECT count(*) FROM (
                SELECT 1 FROM \(Session.dialect.deliveries(of: run, as: "delivery", "INDEXED BY delivery_waiting"))
                WHERE \(Self.waiting) AND delivery.not_before \(comparison) $3
                LIMIT $4
            ) AS waiting
            """, run, environment.code, moment, limit
        ) { try $0.int(0) } ?? 0
    }
}

/// The reports of a run's senders about endpoints on hold.
private enum EndpointHolds {
    /// Returns one hold for each endpoint. If several senders report one, it is the hold of the sender that waits
    /// longest.
    ///
    /// - Parameter isOwned: whether to return holds only while the run has an owner. Holds of a dead sender no longer
    ///   count.
    static func read(_ db: some SQLSession, run: Int64, whileOwned isOwned: Bool) throws -> [EndpointHold] {
        let holds = try db.all(
            """
            SELECT environment, endpoint, status, since, next_try_at FROM endpoint_hold
            JOIN run ON run.id = run_id
            WHERE run_id = $1 AND (NOT $2 OR run.owner IS NOT NULL AND run.state = '\(RunState.running.rawValue)')
            ORDER BY environment, next_try_at DESC, endpoint
            """, run, isOwned
        ) { row in
            EndpointHold(
                environment: PushEnvironment(code: try row.int64(0)), endpoint: try row.text(1),
                status: try row.intOrNil(2), since: try row.timestamp(3), nextTryAt: try row.timestamp(4))
        }
        return holds.reduce(into: []) { longest, hold in
            if longest.last?.environment != hold.environment { longest.append(hold) }
        }
    }
}
