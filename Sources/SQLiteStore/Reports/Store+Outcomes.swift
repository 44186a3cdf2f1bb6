import GRDB
package import Store
import Model

extension SQLiteFileStore {
    /// Hands out the deliveries of a run in order of device, in batches, from one snapshot. Returns how many.
    /// ``StoreError/outcomesPruned(run:at:)`` when only their summary is left.
    package func outcomes(
        run: Int64, batch: @escaping @Sendable ([OutcomeRow]) throws -> Void
    ) async throws -> Int {
        try await read { db in
            if let moment = try OutcomeSummary(db, run).prunedAt() {
                throw StoreError.outcomesPruned(run: run, at: moment)
            }
            let rows = try RowStatement(
                db,
                """
                SELECT \(OutcomeColumns.sql)
                FROM delivery LEFT JOIN device ON device.id = delivery.device_id
                WHERE delivery.run_id = :run ORDER BY delivery.device_id
                """)
            defer { rows.reset() }
            try rows.bind(run, rows.parameter(":run"))
            var outcomes: [OutcomeRow] = []
            var count = 0
            while try rows.step() {
                outcomes.append(OutcomeColumns.outcome(rows))
                guard outcomes.count == StoreLimits.exportBatchRows else { continue }
                count += outcomes.count
                try batch(outcomes)
                outcomes.removeAll(keepingCapacity: true)
            }
            if !outcomes.isEmpty { try batch(outcomes) }
            return count + outcomes.count
        }
    }

    /// What the runs did about one device, newest first.
    package func history(ofDevice device: Int64, limit: Int) async throws -> [DeviceDelivery] {
        try await read { db in try Self.history(ofDevice: device, limit: limit, db) }
    }

    static func history(ofDevice device: Int64, limit: Int, _ db: Database) throws -> [DeviceDelivery] {
        let rows = try RowStatement(
            db,
            """
            SELECT \(OutcomeColumns.deliverySQL)
            FROM run
            JOIN delivery ON delivery.run_id = run.id AND delivery.device_id = :device
            LEFT JOIN device ON device.id = delivery.device_id
            ORDER BY run.id DESC LIMIT :limit
            """)
        defer { rows.reset() }
        try rows.bind(device, rows.parameter(":device"))
        try rows.bind(Int64(limit), rows.parameter(":limit"))
        var history: [DeviceDelivery] = []
        while try rows.step() { history.append(OutcomeColumns.delivery(rows)) }
        for index in history.indices where history[index].outcome.state == .pending {
            history[index].isLeased = try isLeased(history[index], db)
        }
        return history
    }

    private static func isLeased(_ delivery: DeviceDelivery, _ db: Database) throws -> Bool {
        let rows = try RowStatement(db, "SELECT entries FROM lease WHERE run_id = :run")
        defer { rows.reset() }
        try rows.bind(delivery.run, rows.parameter(":run"))
        while try rows.step() {
            let isNamed = LeaseEntry.unpack(rows.bytes(0)).contains {
                $0.device == delivery.outcome.device && $0.attempt > delivery.outcome.attempts
            }
            if isNamed { return true }
        }
        return false
    }
}
