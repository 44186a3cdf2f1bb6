import Model
import RelationalStore
package import Store

extension PostgresSession {
    package func devicesOfUsers(of gone: [Int64], in run: Int64) throws -> [[UserFallback.Candidate]] {
        let rows = try rows(
            """
            SELECT given.device, device.id, device.status, device.alerts_allowed, \(AudienceSelection.seen(.postgres)),
                delivery.state, delivery.status, delivery.reason
            FROM unnest($1::bigint[]) AS given (device)
            JOIN device AS gone ON gone.id = given.device AND gone.user_id <> ''
            CROSS JOIN LATERAL (
                SELECT * FROM device AS own
                WHERE own.user_id = gone.user_id AND own.topic_id = gone.topic_id
                LIMIT \(UserFallback.devicesMax + 1)
            ) AS device
            LEFT JOIN \(DeliveryTable(run: run).name) AS delivery ON delivery.device_id = device.id
            """, gone)
        var users: [Int64: [UserFallback.Candidate]] = [:]
        for row in rows {
            users[try row.int64(0), default: []].append(
                UserFallback.Candidate(
                    device: try row.int64(1), status: DeviceStatus(code: try row.int64(2)),
                    alertsAllowed: try row.boolOrNil(3) ?? true, seenAt: try row.int64(4),
                    state: try row.int64OrNil(5).map(DeliveryState.init(code:)), answer: try row.intOrNil(6) ?? 0,
                    reason: try row.textOrNil(7)))
        }
        return Array(users.values)
    }
}
