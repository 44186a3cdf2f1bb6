import GRDB
import Model
import RelationalStore
import Store

/// Gives the copy of users whose device is gone to another one of theirs, in the transaction of `db`.
struct UserFallbacks {
    private let db: Database
    private let run: Int64
    private let now: Timestamp

    init(_ db: Database, run: Int64, at now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    /// Returns how many deliveries wait again that were suppressed.
    ///
    /// - Parameter gone: the devices whose delivery has just ended because they are gone.
    func replace(_ gone: [Int64]) throws -> Int {
        guard !gone.isEmpty, let fallback = UserFallback(try RunRow.require(db, run)) else { return 0 }
        var replaced = 0
        for device in gone {
            guard let next = fallback.next(of: try devicesOfUser(of: device)) else { continue }
            try reopen(next, notBefore: fallback.notBefore(at: now))
            replaced += 1
        }
        return replaced
    }

    private static let devicesSQL = """
        SELECT device.id, device.status, device.alerts_allowed, \(AudienceSelection.seenSQL), delivery.state,
            delivery.status, delivery.reason
        FROM (
            SELECT other.id FROM device AS gone
            JOIN device AS other ON other.user_id = gone.user_id AND other.topic_id = gone.topic_id
            WHERE gone.id = :device AND gone.user_id <> '' LIMIT \(UserFallback.devicesMax + 1)
        ) AS own
        JOIN device ON device.id = own.id
        LEFT JOIN delivery ON delivery.run_id = :run AND delivery.device_id = own.id
        """

    private func devicesOfUser(of device: Int64) throws -> [UserFallback.Candidate] {
        let rows = try RowStatement(db, Self.devicesSQL)
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

    private func reopen(_ device: Int64, notBefore: Int64) throws {
        let update = try RowStatement(
            db,
            """
            UPDATE delivery SET
                state = \(DeliveryState.pending.rawValue), reason = NULL, not_before = :not_before, changed_at = :now
            WHERE run_id = :run AND device_id = :device
            """)
        try update.bind(notBefore, update.parameter(":not_before"))
        try update.bind(now.milliseconds, update.parameter(":now"))
        try update.bind(run, update.parameter(":run"))
        try update.bind(device, update.parameter(":device"))
        try update.run()
    }
}

extension DeliveryCounts {
    /// Deliveries that were suppressed wait again.
    mutating func reopen(_ count: Int) {
        suppressed -= count
        pending += count
    }
}
