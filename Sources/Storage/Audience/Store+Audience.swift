import GRDB
package import Model

extension Store {
    /// Counts who an audience selects now, without writing anything: those to be sent to by environment and locale,
    /// and the others it asked for by reason. Reads the whole device table once.
    package func reach(
        of audience: AudienceExpression, topic: String, pushType: PushType, now: Timestamp
    ) async throws -> Reach {
        try await read { db in
            let selection = try AudienceSelection(db, audience, topic: topic, now: now)
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT device.environment, device.locale, device.status, device.alerts_allowed, count(*)
                    FROM device
                    WHERE \(selection.sql)
                    GROUP BY device.environment, device.locale, device.status, device.alerts_allowed
                    """, arguments: selection.arguments)
            var reach = Reach()
            var slices: [Reach.Slice: Int] = [:]
            while let row = try rows.next() {
                let count: Int = row[4]
                let reason = AudienceSelection.suppression(
                    status: DeviceStatus(code: row[2]), alertsAllowed: row[3] as Int64? != 0, pushType: pushType)
                if let reason {
                    reach.suppressed[reason, default: 0] += count
                } else {
                    let slice = Reach.Slice(environment: PushEnvironment(code: row[0]), locale: row[1], count: 0)
                    slices[slice, default: 0] += count
                }
            }
            reach.slices = slices.map { slice, count in
                Reach.Slice(environment: slice.environment, locale: slice.locale, count: count)
            }.sorted { ($1.count, $0.locale ?? "") < ($0.count, $1.locale ?? "") }
            return reach
        }
    }

    /// One device to show for each locale the audience would be sent in: the one with the lowest id.
    package func sampleDevices(
        of audience: AudienceExpression, topic: String, now: Timestamp, fields: [AudienceField], limit: Int
    ) async throws -> [DeviceSample] {
        try await read { db in
            let selection = try AudienceSelection(db, audience, topic: topic, now: now)
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT min(device.id), device.locale FROM device
                    WHERE \(selection.sql) AND device.status = 0
                    GROUP BY device.locale ORDER BY count(*) DESC, device.locale LIMIT \(limit)
                    """, arguments: selection.arguments)
            return try rows.map { row in
                DeviceSample(device: row[0], locale: row[1], fields: try Self.fields(fields, of: row[0], db))
            }
        }
    }

    /// What a template would print for a device; nil for what it does not have, or if it is not there.
    package func fields(_ fields: [AudienceField], ofDevice device: Int64) async throws -> [String?] {
        try await read { db in try Self.fields(fields, of: device, db) }
    }

    private static func fields(_ fields: [AudienceField], of device: Int64, _ db: Database) throws -> [String?] {
        guard !fields.isEmpty else { return [] }
        var parameters = AudienceParameters()
        let columns = fields.map { field in AudienceColumn.printed(field) { parameters.add($0) } }
        let id = parameters.add(device)
        let row = try RowStatement(
            db, "SELECT \(columns.joined(separator: ", ")) FROM device WHERE id = \(id)",
            arguments: StatementArguments(parameters.values))
        defer { row.reset() }
        guard try row.step() else { return fields.map { _ in nil } }
        return fields.indices.map { row.text(Int32($0)) }
    }
}

/// A device to render a sample for.
package struct DeviceSample: Hashable, Sendable {
    package var device: Int64
    package var locale: String?
    /// In the order asked for, as a template prints them.
    package var fields: [String?]
}
