package import GRDB
import Model
import RelationalStore
package import Store

extension Database {
    package func devicesOfUsers(of gone: [Int64], in run: Int64) throws -> [[UserFallback.Candidate]] {
        try gone.map { try devicesOfUser(of: $0, in: run) }
    }

    private static let devicesSQL = """
        SELECT device.id, device.status, device.alerts_allowed, \(AudienceSelection.seen(.sqlite)), delivery.state,
            delivery.status, delivery.reason
        FROM (
            SELECT other.id FROM device AS gone
            JOIN device AS other ON other.user_id = gone.user_id AND other.topic_id = gone.topic_id
            WHERE gone.id = :device AND gone.user_id <> '' LIMIT \(UserFallback.devicesMax + 1)
        ) AS own
        JOIN device ON device.id = own.id
        LEFT JOIN delivery ON delivery.run_id = :run AND delivery.device_id = own.id
        """

    private func devicesOfUser(of device: Int64, in run: Int64) throws -> [UserFallback.Candidate] {
        let rows = try RowStatement(self, Self.devicesSQL)
        defer { rows.reset() }
        try rows.bind(run, rows.parameter(":run"))
        try rows.bind(device, rows.parameter(":device"))
        var devices: [UserFallback.Candidate] = []
        while try rows.step() {
            devices.append(
                UserFallback.Candidate(
                    device: rows.int64(0), status: DeviceStatus(code: rows.int64(1)),
                    alertsAllowed: rows.isNull(2) || rows.int64(2) != 0, seenAt: rows.int64(3),
                    state: rows.int64OrNil(4).map(DeliveryState.init(code:)), answer: rows.int(5), reason: rows.text(6))
            )
        }
        return devices
    }
}
