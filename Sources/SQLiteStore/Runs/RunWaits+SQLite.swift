import GRDB
package import Model
import RelationalStore
package import Store

extension SQLiteFileStore {
    package func waits(of run: Int64, now: Timestamp) async throws -> RunWaits {
        try await read(.short) { db in
            let waiting = WaitingDeliveries(db, run: run, now: now)
            var waits = RunWaits(try PushEnvironment.allCases.map { try waiting.nearest($0) })
            waits.holds = try EndpointHolds.read(db, run: run, whileOwned: true)
            return waits
        }
    }

    package func setHolds(_ holds: [EndpointHold], run: Int64, owner: String) async throws {
        try await write { db in
            try RunOwner.locked(db, run).require(owner)
            try EndpointHolds.write(holds, db, run: run)
        }
    }

    package func holds(of run: Int64) async throws -> [EndpointHold] {
        try await read(.short) { db in try EndpointHolds.read(db, run: run, whileOwned: false) }
    }
}

/// Those whose time has not come, read by the index of waiting deliveries: the nearest of them, and of the last moment
/// among these how many there are, up to ``WaitingDelivery/countMax``.
struct WaitingDeliveries {
    private let db: Database
    private let run: Int64
    private let now: Timestamp

    init(_ db: Database, run: Int64, now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    func nearest(_ environment: PushEnvironment) throws -> NearestWaiting {
        try NearestWaiting(try entries(environment)) { moment in
            (
                atMoment: try count(environment, "not_before = :moment", moment, limit: WaitingDelivery.countMax + 1),
                later: try count(environment, "not_before > :moment", moment, limit: 1)
            )
        }
    }

    static let nearestSQL = """
        SELECT delivery.not_before, delivery.reason, delivery.wave, device.time_zone
        FROM delivery INDEXED BY delivery_waiting
        LEFT JOIN device ON device.id = delivery.device_id AND delivery.wave = delivery.not_before
        WHERE delivery.run_id = :run AND delivery.environment = :environment
            AND delivery.state = \(DeliveryState.pending.rawValue) AND delivery.not_before IS NOT NULL
            AND delivery.not_before > :now AND delivery.not_before < \(NotBefore.heldFrom)
        ORDER BY delivery.not_before LIMIT \(WaitingDelivery.readMax)
        """

    private func entries(_ environment: PushEnvironment) throws -> [WaitingDelivery] {
        let rows = try RowStatement(db, Self.nearestSQL)
        defer { rows.reset() }
        try rows.bind(run, rows.parameter(":run"))
        try rows.bind(environment.code, rows.parameter(":environment"))
        try rows.bind(now.milliseconds, rows.parameter(":now"))
        var entries: [WaitingDelivery] = []
        while try rows.step() {
            let moment = rows.int64(0)
            entries.append(
                WaitingDelivery(
                    moment: Timestamp(milliseconds: moment), reason: rows.text(1),
                    isWaveStart: rows.int64OrNil(2) == moment, zone: rows.text(3)))
        }
        return entries
    }

    private func count(
        _ environment: PushEnvironment, _ condition: String, _ moment: Timestamp, limit: Int
    ) throws -> Int {
        try Int.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT count(*) FROM (
                        SELECT 1 FROM delivery INDEXED BY delivery_waiting
                        WHERE run_id = :run AND environment = :environment
                            AND state = \(DeliveryState.pending.rawValue) AND not_before IS NOT NULL
                            AND not_before < \(NotBefore.heldFrom) AND \(condition)
                        LIMIT :limit
                    )
                    """),
            arguments: [
                "run": run, "environment": environment.code, "moment": moment.milliseconds, "limit": limit,
            ]) ?? 0
    }
}

/// What the sender of a run says of endpoints in trouble.
private enum EndpointHolds {
    /// - Parameter isOwned: only while somebody has the run: a sender that is gone says nothing any more.
    static func read(_ db: Database, run: Int64, whileOwned isOwned: Bool) throws -> [EndpointHold] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT environment, endpoint, status, since, next_try_at FROM endpoint_hold
                JOIN run ON run.id = run_id
                WHERE run_id = :run AND (NOT :owned OR run.owner IS NOT NULL AND run.state = :running)
                ORDER BY environment
                """, arguments: ["run": run, "owned": isOwned, "running": RunState.running.rawValue]
        ).map {
            EndpointHold(
                environment: PushEnvironment(code: $0[0]), endpoint: $0[1], status: $0[2],
                since: Timestamp(milliseconds: $0[3]), nextTryAt: Timestamp(milliseconds: $0[4]))
        }
    }

    static func write(_ holds: [EndpointHold], _ db: Database, run: Int64) throws {
        try db.execute(sql: "DELETE FROM endpoint_hold WHERE run_id = :run", arguments: ["run": run])
        for hold in holds {
            try db.execute(
                sql: """
                    INSERT INTO endpoint_hold (run_id, environment, endpoint, status, since, next_try_at)
                    VALUES (:run, :environment, :endpoint, :status, :since, :next)
                    """,
                arguments: [
                    "run": run, "environment": hold.environment.code, "endpoint": hold.endpoint,
                    "status": hold.status, "since": hold.since.milliseconds, "next": hold.nextTryAt.milliseconds,
                ])
        }
    }
}
