import Model
package import Store
import RelationalStore

extension PostgresDatabase {
    private static let exportBatchRows = 5_000

    package func outcomes(
        run: Int64, batch: @escaping @Sendable ([OutcomeRow]) throws -> Void
    ) async throws -> Int {
        try await read { db in
            if let moment = try OutcomeSummary(db, run).prunedAt() {
                throw StoreError.outcomesPruned(run: run, at: moment)
            }
            guard try DeliveryTable(run: run).isThere(db) else { return 0 }
            var outcomes: [OutcomeRow] = []
            var count = 0
            try db.each(
                """
                SELECT \(OutcomeColumns.sql)
                FROM \(DeliveryTable(run: run).name) AS delivery LEFT JOIN device ON device.id = delivery.device_id
                ORDER BY delivery.device_id
                """
            ) { row in
                outcomes.append(try OutcomeColumns.outcome(row))
                guard outcomes.count == Self.exportBatchRows else { return }
                count += outcomes.count
                try batch(outcomes)
                outcomes.removeAll(keepingCapacity: true)
            }
            if !outcomes.isEmpty { try batch(outcomes) }
            return count + outcomes.count
        }
    }

    package func reached(by run: Int64) async throws -> ReachedDevices {
        try await read { db in
            guard try DeliveryTable(run: run).isThere(db) else { return ReachedDevices(all: 0, gone: 0, production: 0) }
            let found = try db.all(
                """
                SELECT count(*), count(*) FILTER (WHERE device.id IS NULL),
                    count(*) FILTER (WHERE device.environment = \(PushEnvironment.production.code))
                FROM \(DeliveryTable(run: run).name) AS sent LEFT JOIN device ON device.id = sent.device_id
                WHERE \(AudienceSelection.wasReached)
                """
            ) { ReachedDevices(all: try $0.int(0), gone: try $0.int(1), production: try $0.int(2)) }
            return found.first ?? ReachedDevices(all: 0, gone: 0, production: 0)
        }
    }

    package func waves(_ run: Int64) async throws -> [WaveShare] {
        try await read { db in
            guard try DeliveryTable(run: run).isThere(db) else { return [] }
            return try db.all(
                """
                SELECT delivery.wave,
                    CASE WHEN delivery.profile IS NULL THEN device.time_zone
                        ELSE nullif(delivery_profile.time_zone, '') END AS zone,
                    count(*) AS deliveries
                FROM \(DeliveryTable(run: run).name) AS delivery LEFT JOIN device ON device.id = delivery.device_id
                LEFT JOIN delivery_profile ON delivery_profile.id = delivery.profile
                WHERE delivery.wave IS NOT NULL
                GROUP BY delivery.wave, zone
                ORDER BY delivery.wave, deliveries DESC, zone NULLS FIRST
                """
            ) { row in
                WaveShare(startsAt: try row.timestamp(0), zone: try row.textOrNil(1), deliveries: try row.int(2))
            }
        }
    }

    package func history(ofDevice device: Int64, limit: Int) async throws -> [DeviceDelivery] {
        // Down to runs that had the device, which may be the first ones of all.
        try await read(.expensive) { db in
            try DeviceRuns(db, device: device).latest(had: limit, leftOut: 0).had
        }
    }

    package func story(ofDevice device: Int64, runsMax: Int) async throws -> DeviceStory? {
        try await read(.expensive) { db in
            guard let stored = try StoredDeviceRow.find(device, db) else { return nil }
            var story = DeviceStory(device: stored)
            story.oldTokens = try Self.oldTokens(of: device, db)
            let found = try DeviceRuns(db, device: device).latest(had: runsMax, leftOut: runsMax)
            story.isCut = found.had.count == runsMax || found.leftOut.count == runsMax
            story.chapters = try found.had.flatMap { delivery in
                try RunRow.list(db, "WHERE id = $1", delivery.run).readable
                    .map { DeviceStory.Chapter(run: $0, delivery: delivery) }
            }
            for run in try found.leftOut.flatMap({ try RunRow.list(db, "WHERE id = $1", $0).readable }) {
                guard run.definition.campaign.deviceTopic == stored.record.topic else { continue }
                story.chapters.append(
                    DeviceStory.Chapter(run: run, delivery: nil, prunedAt: try OutcomeSummary(db, run.id).prunedAt()))
            }
            story.chapters.sort { $0.run.id < $1.run.id }
            story.silentPushes = try db.all("SELECT settled_at FROM silent_ledger WHERE device_id = $1", device) {
                try $0.timestampOrNil(0)
            }
            story.cappedPushes = try CapLedger(db).story(of: story.device)
            return story
        }
    }

    private static func oldTokens(of device: Int64, _ db: PostgresSession) throws -> [DeviceStory.OldToken] {
        try db.rows(
            """
            SELECT token_generation, token, environment, replaced_at FROM token_history
            WHERE device_id = $1 ORDER BY token_generation
            """, device
        ).compactMap { row in
            guard let token = DeviceToken(bytes: try row.bytes(1)) else { return nil }
            return DeviceStory.OldToken(
                generation: try row.int(0), token: token, environment: PushEnvironment(code: try row.int64(2)),
                replacedAt: try row.timestamp(3))
        }
    }
}

/// What runs did about one device, newest first. Its delivery of each run is one look-up in the run's own partition: a
/// question to all of them at once would be planned for as long as there are runs.
private struct DeviceRuns {
    private static let runsAtOnce = 50

    private let db: PostgresSession
    private let device: Int64

    init(_ db: PostgresSession, device: Int64) {
        self.db = db
        self.device = device
    }

    private struct Named {
        let run: Int64
        let campaign: String
        let occurrence: String
        let isTest: Bool
        let hasDeliveries: Bool
    }

    /// So many runs that had the device, and so many that are no tests and did not, at most.
    func latest(had: Int, leftOut: Int) throws -> (had: [DeviceDelivery], leftOut: [Int64]) {
        var (deliveries, others): ([DeviceDelivery], [Int64]) = ([], [])
        var before = Int64.max
        while deliveries.count < had || others.count < leftOut {
            let runs = try runs(before: before)
            guard let last = runs.last else { break }
            before = last.run
            let found = try self.deliveries(of: runs)
            for run in runs {
                if let delivery = found[run.run] {
                    if deliveries.count < had { deliveries.append(delivery) }
                } else if !run.isTest, others.count < leftOut {
                    others.append(run.run)
                }
            }
        }
        for index in deliveries.indices where deliveries[index].outcome.state == .pending {
            deliveries[index].isLeased = try isLeased(deliveries[index])
        }
        return (deliveries, others)
    }

    private func runs(before: Int64) throws -> [Named] {
        try db.all(
            """
            SELECT id, campaign, occurrence, is_test, outcomes_pruned_at IS NULL FROM run
            WHERE id < $1 ORDER BY id DESC LIMIT \(Self.runsAtOnce)
            """, before
        ) { row in
            Named(
                run: try row.int64(0), campaign: try row.text(1), occurrence: try row.text(2),
                isTest: try row.bool(3), hasDeliveries: try row.bool(4))
        }
    }

    private func deliveries(of runs: [Named]) throws -> [Int64: DeviceDelivery] {
        let asked = runs.filter(\.hasDeliveries)
        guard !asked.isEmpty else { return [:] }
        let byRun = Dictionary(asked.map { ($0.run, $0) }) { first, _ in first }
        let parts = asked.map { run in
            "SELECT * FROM \(DeliveryTable(run: run.run).name) WHERE run_id = \(run.run) AND device_id = $1"
        }
        let rows = try db.rows(
            .once(
                """
                SELECT \(OutcomeColumns.sql), delivery.run_id, delivery.not_before, delivery.held_for,
                    delivery.held_until
                FROM (\(parts.joined(separator: " UNION ALL "))) AS delivery
                LEFT JOIN device ON device.id = delivery.device_id
                """), device)
        var found: [Int64: DeviceDelivery] = [:]
        for row in rows {
            let run = try row.int64(OutcomeColumns.count)
            guard let named = byRun[run] else { continue }
            found[run] = try delivery(row, of: named)
        }
        return found
    }

    private func delivery(_ row: PostgresRow, of run: Named) throws -> DeviceDelivery {
        let outcome = try OutcomeColumns.outcome(row)
        let notBefore = NotBefore.moment(try row.int64OrNil(OutcomeColumns.count + 1))
        return DeviceDelivery(
            run: run.run, campaign: run.campaign, occurrence: run.occurrence, isTest: run.isTest, outcome: outcome,
            notBefore: outcome.state == .pending ? notBefore : nil, isLeased: false,
            heldFor: try row.textOrNil(OutcomeColumns.count + 2).flatMap(SuppressionReason.init),
            heldUntil: try row.timestampOrNil(OutcomeColumns.count + 3))
    }

    private func isLeased(_ delivery: DeviceDelivery) throws -> Bool {
        let device = delivery.outcome.device
        let ended = try db.first(
            "SELECT leases FROM \(DeliveryTable(run: delivery.run).name) WHERE device_id = $1", device
        ) { try $0.int(0) }
        return try db.rows("SELECT entries FROM lease WHERE run_id = $1", delivery.run).contains { row in
            LeaseEntry.unpack(try row.bytes(0)).contains { $0.device == device && $0.number > ended ?? 0 }
        }
    }
}
