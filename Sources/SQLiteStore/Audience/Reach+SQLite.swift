import GRDB
package import Model
package import Store

extension SQLiteFileStore {
    package func reach(
        of audience: AudienceExpression, topic: String, pushType: PushType, now: Timestamp
    ) async throws -> Reach {
        try await read { db in
            let selection = try AudienceSelection(db, audience, topic: topic, now: now)
            var count = ReachCount(FreezePolicy(pushType))
            try count.count(selection, db, budget: nil)
            return count.reach()
        }
    }

    package func reach(
        of campaign: Campaign, budget: Model.Configuration.SilentBudget?, waves: RecipientWaves?, now: Timestamp
    ) async throws -> Reach {
        try await read { db in
            try AudienceSelection.with(campaign, now: now, db) { selection in
                let budget = campaign.pushType == .background ? budget : nil
                let spending = try budget.map { try SilentSpending(db, $0, now: now) }
                defer { spending?.close() }
                var count = ReachCount(FreezePolicy(campaign, waves: waves), variants: campaign.variants.count)
                try count.count(selection, db, budget: spending)
                return count.reach()
            }
        }
    }

    package func sampleDevices(
        of audience: AudienceExpression, topic: String, now: Timestamp, fields: [AudienceField], limit: Int
    ) async throws -> [DeviceSample] {
        try await read { db in
            let selection = try AudienceSelection(db, audience, topic: topic, now: now)
            return try Self.samples(selection, fields: fields, limit: limit, db)
        }
    }

    package func sampleDevices(
        of campaign: Campaign, now: Timestamp, fields: [AudienceField], limit: Int
    ) async throws -> [DeviceSample] {
        try await read { db in
            try AudienceSelection.with(campaign, now: now, db) { selection in
                try Self.samples(selection, fields: fields, limit: limit, db)
            }
        }
    }

    private static func samples(
        _ selection: AudienceSelection, fields: [AudienceField], limit: Int, _ db: Database
    ) throws -> [DeviceSample] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT min(device.id), device.locale FROM device
                WHERE \(selection.sql) AND device.status = \(DeviceStatus.active.code)
                GROUP BY device.locale ORDER BY count(*) DESC, device.locale LIMIT \(limit)
                """, arguments: StatementArguments(selection.arguments))
        return try rows.map { row in
            DeviceSample(device: row[0], locale: row[1], fields: try Self.fields(fields, of: row[0], db))
        }
    }

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
