import GRDB
package import Model
package import Store

extension SQLiteFileStore {
    package func waits(of run: Int64, now: Timestamp) async throws -> RunWaits {
        try await read { db in
            let waiting = WaitingDeliveries(db, run: run, now: now)
            var waits = RunWaits()
            for environment in PushEnvironment.allCases { try waiting.add(environment, to: &waits) }
            waits.groups.sort { ($0.first, $0.last) < ($1.first, $1.last) }
            waits.holds = try EndpointHolds.read(db, run: run, whileOwned: true)
            return waits
        }
    }

    package func setHolds(_ holds: [EndpointHold], run: Int64, owner: String) async throws {
        try await write { db in
            try RunOwner(db, run).require(owner)
            try EndpointHolds.write(holds, db, run: run)
        }
    }

    package func holds(of run: Int64) async throws -> [EndpointHold] {
        try await read { db in try EndpointHolds.read(db, run: run, whileOwned: false) }
    }
}

/// Those whose time has not come, read by the index of waiting deliveries: the nearest of them, and of the last moment
/// among these how many there are in all. A wave of a million costs no more than its count.
struct WaitingDeliveries {
    private static let readMax = 1000

    private let db: Database
    private let run: Int64
    private let now: Timestamp

    init(_ db: Database, run: Int64, now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    private struct Entry {
        var moment: Timestamp
        var cause: RunWaits.Cause
        var zone: String?
    }

    func add(_ environment: PushEnvironment, to waits: inout RunWaits) throws {
        let entries = try nearest(environment)
        guard let last = entries.last else { return }
        for entry in entries { waits.add(entry.cause, at: entry.moment) }
        if entries.count == Self.readMax {
            let all = try count(environment, "not_before = :moment", last.moment)
            waits.add(last.cause, at: last.moment, all - entries.count { $0.moment == last.moment })
            let later = try count(environment, "not_before > :moment", last.moment, limit: 1)
            waits.hasLater = waits.hasLater || later > 0
        }
        try addZones(entries, to: &waits)
    }

    static let nearestSQL = """
        SELECT delivery.not_before, delivery.reason, delivery.wave, device.time_zone
        FROM delivery INDEXED BY delivery_waiting
        LEFT JOIN device ON device.id = delivery.device_id AND delivery.wave = delivery.not_before
        WHERE delivery.run_id = :run AND delivery.environment = :environment
            AND delivery.state = \(DeliveryState.pending.rawValue) AND delivery.not_before IS NOT NULL
            AND delivery.not_before > :now AND delivery.not_before < \(LeaseTransaction.inFlight)
        ORDER BY delivery.not_before LIMIT \(readMax)
        """

    private func nearest(_ environment: PushEnvironment) throws -> [Entry] {
        let rows = try RowStatement(db, Self.nearestSQL)
        defer { rows.reset() }
        try rows.bind(run, rows.parameter(":run"))
        try rows.bind(environment.code, rows.parameter(":environment"))
        try rows.bind(now.milliseconds, rows.parameter(":now"))
        var entries: [Entry] = []
        while try rows.step() {
            let moment = rows.int64(0)
            let cause = RunWaits.Cause(reason: rows.text(1), isWaveStart: rows.int64OrNil(2) == moment)
            entries.append(Entry(moment: Timestamp(milliseconds: moment), cause: cause, zone: rows.text(3)))
        }
        return entries
    }

    private func count(
        _ environment: PushEnvironment, _ condition: String, _ moment: Timestamp, limit: Int = .max
    ) throws -> Int {
        try Int.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT count(*) FROM (
                        SELECT 1 FROM delivery INDEXED BY delivery_waiting
                        WHERE run_id = :run AND environment = :environment
                            AND state = \(DeliveryState.pending.rawValue) AND not_before IS NOT NULL
                            AND not_before < \(LeaseTransaction.inFlight) AND \(condition)
                        LIMIT :limit
                    )
                    """),
            arguments: [
                "run": run, "environment": environment.code, "moment": moment.milliseconds, "limit": limit,
            ]) ?? 0
    }

    private func addZones(_ entries: [Entry], to waits: inout RunWaits) throws {
        for index in waits.groups.indices where waits.groups[index].cause == .wave {
            var devices: [String: Int] = [:]
            for entry in entries where entry.cause == .wave && entry.moment == waits.groups[index].first {
                if let zone = entry.zone { devices[zone, default: 0] += 1 }
            }
            let zones = devices.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map(\.key)
            waits.groups[index].zones += zones.filter { !waits.groups[index].zones.contains($0) }
        }
    }
}

extension RunWaits.Cause {
    /// By what stands with the delivery where a reason would.
    fileprivate init(reason: String?, isWaveStart: Bool) {
        switch reason {
        case nil where isWaveStart: self = .wave
        case SuppressionReason.quietHours.rawValue: self = .quietHours
        case SuppressionReason.silentBudget.rawValue: self = .silentBudget
        default: self = .retry
        }
    }
}

extension RunWaits {
    fileprivate mutating func add(_ cause: Cause, at moment: Timestamp, _ count: Int = 1) {
        let index = groups.firstIndex { $0.cause == cause && (cause != .wave || $0.first == moment) }
        guard let index else {
            return groups.append(Group(cause: cause, deliveries: count, first: moment, last: moment))
        }
        groups[index].deliveries += count
        groups[index].first = min(groups[index].first, moment)
        groups[index].last = max(groups[index].last, moment)
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
