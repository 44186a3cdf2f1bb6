import GRDB
package import Store
package import Model

extension SQLiteFileStore {
    /// Counts who an audience selects now, without writing anything: those to be sent to by environment and locale,
    /// and the others it asked for by reason. Reads the whole device table once.
    package func reach(
        of audience: AudienceExpression, topic: String, pushType: PushType, now: Timestamp
    ) async throws -> Reach {
        try await read { db in
            let selection = try AudienceSelection(db, audience, topic: topic, now: now)
            var count = ReachCount(pushType, campaign: nil)
            try count.count(selection, db, budget: nil)
            return count.reach()
        }
    }

    /// The same for a campaign: its expression or its `audience_sql`, split by holdout and variants as a run would.
    /// With `budget`, a background campaign also learns how many devices have none left now.
    ///
    /// An `audience_sql` is compiled and run on a connection of its own that reads the views of ``AnalystView`` only, for
    /// at most ``StoreLimits/audienceSQLTime``; anything else is ``StoreError/audienceSQL(_:)``.
    ///
    /// - Parameter waves: of a run that follows each device's clock: those who would get nothing by it are counted.
    package func reach(
        of campaign: Campaign, budget: Model.Configuration.SilentBudget?, waves: RecipientWaves?, now: Timestamp
    ) async throws -> Reach {
        try await read { db in
            try AudienceSelection.with(campaign, now: now, db) { selection in
                let budget = campaign.pushType == .background ? budget : nil
                let spending = try budget.map { try SilentSpending(db, $0, now: now) }
                defer { spending?.close() }
                var count = ReachCount(campaign.pushType, campaign: campaign, waves: waves)
                try count.count(selection, db, budget: spending)
                return count.reach()
            }
        }
    }

    /// One device to show for each locale the audience would be sent in: the one with the lowest id.
    package func sampleDevices(
        of audience: AudienceExpression, topic: String, now: Timestamp, fields: [AudienceField], limit: Int
    ) async throws -> [DeviceSample] {
        try await read { db in
            let selection = try AudienceSelection(db, audience, topic: topic, now: now)
            return try Self.samples(selection, fields: fields, limit: limit, db)
        }
    }

    /// The same for a campaign, by its expression or its `audience_sql`.
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
                WHERE \(selection.sql) AND device.status = 0
                GROUP BY device.locale ORDER BY count(*) DESC, device.locale LIMIT \(limit)
                """, arguments: StatementArguments(selection.arguments))
        return try rows.map { row in
            DeviceSample(device: row[0], locale: row[1], fields: try Self.fields(fields, of: row[0], db))
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
