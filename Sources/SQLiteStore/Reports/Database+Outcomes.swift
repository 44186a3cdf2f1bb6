import GRDB
import Model
import RelationalStore
package import Store

extension Database {
    package func runs(
        ofDevice device: Int64, had: Int, leftOut: Int
    ) throws -> (had: [DeviceDelivery], leftOut: [Int64]) {
        let history = try all(
            """
            SELECT \(OutcomeColumns<Database>.sql), run.id, run.campaign, run.occurrence, run.is_test,
                delivery.not_before, delivery.held_for, delivery.held_until
            FROM run
            JOIN delivery ON delivery.run_id = run.id AND delivery.device_id = $1
            LEFT JOIN device ON device.id = delivery.device_id
            ORDER BY run.id DESC LIMIT $2
            """, device, had, read: Self.delivery)
        guard leftOut > 0 else { return (history, []) }
        let others = try all(
            """
            SELECT id FROM run
            WHERE is_test = 0 AND NOT EXISTS (SELECT 1 FROM delivery WHERE run_id = run.id AND device_id = $1)
            ORDER BY id DESC LIMIT $2
            """, device, leftOut
        ) { try $0.int64(0) }
        return (history, others)
    }

    private static func delivery(_ row: SQLiteFields) throws -> DeviceDelivery {
        let (outcome, further) = (try OutcomeColumns<Database>.outcome(row), OutcomeColumns<Database>.count)
        return DeviceDelivery(
            run: try row.int64(further), campaign: try row.text(further + 1), occurrence: try row.text(further + 2),
            isTest: try row.bool(further + 3), outcome: outcome,
            notBefore: outcome.state == .pending ? NotBefore.moment(try row.int64OrNil(further + 4)) : nil,
            isLeased: false, heldFor: try row.textOrNil(further + 5).flatMap(SuppressionReason.init),
            heldUntil: try row.timestampOrNil(further + 6))
    }
}
