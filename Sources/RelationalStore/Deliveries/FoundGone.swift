import Model
import Store

/// The devices that APNs found gone in a run. Their status is decided at the end of the run.
package struct FoundGone<Session: SQLSession> {
    /// The number of devices per slice. Writing a slice takes a fraction of a second.
    private static var sliceCount: Int { 10_000 }

    package let db: Session
    package let run: Int64

    package init(_ db: Session, run: Int64) {
        self.db = db
        self.run = run
    }

    /// Marks as gone the devices of the next slice whose verdict still holds, and deletes the slice's entries.
    ///
    /// - Returns: the number of marked devices, and the last device read; `nil` at the end.
    func markSlice(after device: Int64) throws -> (count: Int, last: Int64?) {
        let end = try db.first(
            """
            SELECT max(device_id) FROM (
                SELECT device_id FROM found_gone WHERE run_id = $1 AND device_id > $2
                ORDER BY device_id LIMIT \(Self.sliceCount)
            ) AS slice
            """, run, device
        ) { try $0.int64OrNil(0) }
        guard let last = end ?? nil else { return (0, nil) }
        let standing = try DeviceVerdicts(db).standing(
            """
            SELECT device.id, found.reason, found.generation, found.since, \(DeviceVerdicts<Session>.columns)
            FROM found_gone AS found JOIN device ON device.id = found.device_id
            WHERE found.run_id = $1 AND found.device_id > $2 AND found.device_id <= $3
                AND device.status <> \(DeviceStatus.gone.code)
            ORDER BY device.id
            """, values: [run, device, last])
        // Do not keep the statement, because it would also keep its long list.
        try db.execute(
            .once(
                """
                UPDATE device SET
                    status = \(DeviceStatus.gone.code), status_reason = found.reason, status_at = found.since
                FROM found_gone AS found
                WHERE found.run_id = $1 AND found.device_id = device.id AND device.id \(Session.dialect.isAny(2))
                """), run, standing.map(\.device))
        try db.execute("UPDATE run SET devices_gone = devices_gone + $2 WHERE id = $1", run, standing.count)
        try db.execute("DELETE FROM found_gone WHERE run_id = $1 AND device_id <= $2", run, last)
        return (standing.count, last)
    }

    package func forget() throws { try db.execute("DELETE FROM found_gone WHERE run_id = $1", run) }
}

/// Compares the verdicts of responses about devices with the devices' current data.
struct DeviceVerdicts<Session: SQLSession> {
    /// The columns that ``standing(_:values:)`` compares a verdict with.
    static var columns: String {
        """
        device.token_generation, device.registered_at,
            (SELECT heard_at FROM token_heard WHERE token_heard.device_id = device.id), device.last_seen_at
        """
    }

    private let db: Session

    init(_ db: Session) { self.db = db }

    /// Returns the verdicts that still hold, and locks their devices in the order of the query.
    ///
    /// - Parameter query: selects device, reason, generation and moment of the verdict, then ``columns``.
    func standing(_ query: String, values: [any SQLValue]) throws -> [(device: Int64, reason: String?)] {
        try db.all(.once(query + Session.dialect.word("", " FOR NO KEY UPDATE OF device")), values: values) { row in
            let holds = TokenVerdict.holds(
                generation: try row.int(2), at: try row.timestamp(3),
                for: TokenRegistration(
                    generation: try row.int(4), registeredAt: try row.timestampOrNil(5),
                    heardAt: try row.timestampOrNil(6), lastSeenAt: try row.timestampOrNil(7)))
            return holds ? (device: try row.int64(0), reason: try row.textOrNil(1)) : nil
        }.compactMap(\.self)
    }
}
