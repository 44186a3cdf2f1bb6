import Model
package import Store
import RelationalStore

extension PostgresDatabase {
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
                SELECT \(OutcomeColumns<PostgresSession>.sql), delivery.run_id, delivery.not_before, delivery.held_for,
                    delivery.held_until
                FROM (\(parts.joined(separator: " UNION ALL "))) AS delivery
                LEFT JOIN device ON device.id = delivery.device_id
                """), device)
        var found: [Int64: DeviceDelivery] = [:]
        for row in rows {
            let run = try row.int64(OutcomeColumns<PostgresSession>.count)
            guard let named = byRun[run] else { continue }
            found[run] = try delivery(row, of: named)
        }
        return found
    }

    private func delivery(_ row: PostgresRow, of run: Named) throws -> DeviceDelivery {
        let outcome = try OutcomeColumns<PostgresSession>.outcome(row)
        let notBefore = NotBefore.moment(try row.int64OrNil(OutcomeColumns<PostgresSession>.count + 1))
        return DeviceDelivery(
            run: run.run, campaign: run.campaign, occurrence: run.occurrence, isTest: run.isTest, outcome: outcome,
            notBefore: outcome.state == .pending ? notBefore : nil, isLeased: false,
            heldFor: try row.textOrNil(OutcomeColumns<PostgresSession>.count + 2).flatMap(SuppressionReason.init),
            heldUntil: try row.timestampOrNil(OutcomeColumns<PostgresSession>.count + 3))
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
