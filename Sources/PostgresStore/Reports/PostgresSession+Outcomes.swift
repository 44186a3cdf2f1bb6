import Model
import RelationalStore
package import Store

extension PostgresSession {
    package func runs(
        ofDevice device: Int64, had: Int, leftOut: Int
    ) throws -> (had: [DeviceDelivery], leftOut: [Int64]) {
        try DeviceRuns(self, device: device).latest(had: had, leftOut: leftOut)
    }
}

/// The deliveries of one device by run, newest first. Each delivery is one look-up in the run's own partition. The
/// planning time of one query over all partitions would grow with the number of runs.
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

    /// Returns the latest runs that included the device, at most `had`, and the latest that did not, at most
    /// `leftOut`, without tests.
    func latest(had: Int, leftOut: Int) throws -> (had: [DeviceDelivery], leftOut: [Int64]) {
        var (deliveries, others): ([DeviceDelivery], [Int64]) = ([], [])
        var before = Int64.max
        while deliveries.count < had || others.count < leftOut {
            let runs = try runs(before: before)
            guard let last = runs.last else { break }
            before = last.run
            let found = try db.keepingNoLocks { try self.deliveries(of: runs) }
            for run in runs {
                if let delivery = found[run.run] {
                    if deliveries.count < had { deliveries.append(delivery) }
                } else if !run.isTest, others.count < leftOut {
                    others.append(run.run)
                }
            }
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
}
