package import Model
package import Store
import RelationalStore

extension PostgresDatabase {
    package func waits(of run: Int64, now: Timestamp) async throws -> RunWaits {
        try await read(.short) { db in
            let waiting = WaitingDeliveries(db, run: run, now: now)
            var waits = RunWaits()
            if try DeliveryTable(run: run).isThere(db) {
                waits = RunWaits(try PushEnvironment.allCases.map { try waiting.nearest($0) })
            }
            waits.holds = try EndpointHolds.read(db, run: run, whileOwned: true)
            return waits
        }
    }

    package func setHolds(_ holds: [EndpointHold], run: Int64, owner: String) async throws {
        try await write(.quick) { db in
            try RunOwner.require(owner, of: run, db)
            try EndpointHolds.write(holds, db, run: run, by: owner)
        }
    }

    package func holds(of run: Int64) async throws -> [EndpointHold] {
        try await read(.short) { db in try EndpointHolds.read(db, run: run, whileOwned: false) }
    }
}

/// Those whose time has not come, read by the index of waiting deliveries: the nearest of them, and of the last moment
/// among these how many there are, up to ``WaitingDelivery/countMax``.
private struct WaitingDeliveries {
    private let db: PostgresSession
    private let table: String
    private let now: Timestamp

    init(_ db: PostgresSession, run: Int64, now: Timestamp) {
        self.db = db
        self.now = now
        table = DeliveryTable(run: run).name
    }

    func nearest(_ environment: PushEnvironment) throws -> NearestWaiting {
        try NearestWaiting(try entries(environment)) { moment in
            (
                atMoment: try count(environment, "= $2", moment, limit: WaitingDelivery.countMax + 1),
                later: try count(environment, "> $2", moment, limit: 1)
            )
        }
    }

    private func entries(_ environment: PushEnvironment) throws -> [WaitingDelivery] {
        try db.all(
            """
            SELECT delivery.not_before, delivery.reason, delivery.wave, device.time_zone
            FROM \(table) AS delivery
            LEFT JOIN device ON device.id = delivery.device_id AND delivery.wave = delivery.not_before
            WHERE delivery.environment = $1 AND delivery.state = \(DeliveryState.pending.code)
                AND delivery.not_before > $2 AND delivery.not_before < \(NotBefore.heldFrom)
            ORDER BY delivery.not_before LIMIT \(WaitingDelivery.readMax)
            """, environment.code, now
        ) { row in
            let moment = try row.timestamp(0)
            return WaitingDelivery(
                moment: moment, reason: try row.textOrNil(1), isWaveStart: try row.timestampOrNil(2) == moment,
                zone: try row.textOrNil(3))
        }
    }

    private func count(
        _ environment: PushEnvironment, _ condition: String, _ moment: Timestamp, limit: Int
    ) throws -> Int {
        try db.first(
            """
            SELECT count(*) FROM (
                SELECT 1 FROM \(table)
                WHERE environment = $1 AND state = \(DeliveryState.pending.code)
                    AND not_before < \(NotBefore.heldFrom) AND not_before \(condition)
                LIMIT $3
            ) AS waiting
            """, environment.code, moment, limit
        ) { try $0.int(0) } ?? 0
    }
}

/// What the sender of a run says of endpoints in trouble.
private enum EndpointHolds {
    /// Of several senders in trouble at an endpoint the one that waits longest speaks.
    ///
    /// - Parameter isOwned: only while somebody has the run: a sender that is gone says nothing any more.
    static func read(_ db: PostgresSession, run: Int64, whileOwned isOwned: Bool) throws -> [EndpointHold] {
        try db.all(
            """
            SELECT DISTINCT ON (environment) environment, endpoint, status, since, next_try_at FROM endpoint_hold
            JOIN run ON run.id = run_id
            WHERE run_id = $1 AND (NOT $2 OR run.owner IS NOT NULL AND run.state = '\(RunState.running.rawValue)')
            ORDER BY environment, next_try_at DESC, endpoint_hold.owner
            """, run, isOwned
        ) { row in
            EndpointHold(
                environment: PushEnvironment(code: try row.int64(0)), endpoint: try row.text(1),
                status: try row.intOrNil(2), since: try row.timestamp(3), nextTryAt: try row.timestamp(4))
        }
    }

    static func write(_ holds: [EndpointHold], _ db: PostgresSession, run: Int64, by owner: String) throws {
        // Of those that do not send of it any more nobody says when that is over.
        try db.execute(
            """
            DELETE FROM endpoint_hold
            WHERE run_id = $1 AND (owner = $2 OR owner NOT IN (SELECT owner FROM run_sender WHERE run_id = $1))
            """, run, owner)
        for hold in holds {
            try db.execute(
                """
                INSERT INTO endpoint_hold (run_id, owner, environment, endpoint, status, since, next_try_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7)
                """, run, owner, hold.environment.code, hold.endpoint, hold.status, hold.since, hold.nextTryAt)
        }
    }
}
