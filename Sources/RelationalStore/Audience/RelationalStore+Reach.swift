package import Model
package import Store

extension RelationalStore {
    package func reach(
        of audience: AudienceExpression, topic: String, pushType: PushType, now: Timestamp
    ) async throws -> Reach {
        try await snapshot(.expensive) { db in
            let selection = try AudienceSelection(db, audience, topic: topic, now: now)
            return try db.reach(ReachCount(FreezePolicy(pushType)), selection, window: nil, caps: nil)
        }
    }

    package func reach(
        of campaign: Campaign, budget: Configuration.SilentBudget?, caps: CapPreview?, waves: RecipientWaves?,
        now: Timestamp
    ) async throws -> Reach {
        try await selecting(campaign, now: now) { db, selection in
            let budget = campaign.pushType == .background ? budget : nil
            let gap: RestoreGap? = budget == nil && caps == nil ? nil : try StoredFact.value(RestoreGap.key, db)
            var policy = FreezePolicy(campaign, waves: waves, seeds: selection.seeds)
            let bestHour = try db.bestHour(campaign, waves)
            policy.bestHour = bestHour?.policy
            try selection.tellUsers(&policy, cutShort: nil, db)
            return try db.reach(
                ReachCount(policy, variants: campaign.variants.count, opens: bestHour?.opens), selection,
                window: budget.map { RollingWindow($0, at: now, gap: gap) },
                caps: caps.map { CapForecast($0, classes: try db.capClasses(), now: now, gap: gap) })
        }
    }

    package func sampleDevices(
        of audience: AudienceExpression, topic: String, now: Timestamp, fields: [AudienceField], limit: Int
    ) async throws -> [DeviceSample] {
        try await snapshot(.expensive) { db in
            try db.samples(
                AudienceSelection(db, audience, topic: topic, now: now), fields: fields, limit: limit)
        }
    }

    package func sampleDevices(
        of campaign: Campaign, now: Timestamp, fields: [AudienceField], limit: Int
    ) async throws -> [DeviceSample] {
        try await selecting(campaign, now: now) { db, selection in
            try db.samples(selection, fields: fields, limit: limit)
        }
    }

    package func fields(_ fields: [AudienceField], ofDevice device: Int64) async throws -> [String?] {
        try await snapshot(.short) { db in try db.fields(fields, of: device) }
    }
}

extension SQLSession {
    fileprivate func samples(
        _ selection: AudienceSelection, fields: [AudienceField], limit: Int
    ) throws -> [DeviceSample] {
        let rows = try all(
            .once(
                """
                SELECT min(device.id), device.locale FROM device
                WHERE \(selection.sql) AND device.status = \(DeviceStatus.active.code)
                GROUP BY device.locale ORDER BY count(*) DESC, device.locale NULLS FIRST LIMIT \(limit)
                """), values: selection.values
        ) { (device: try $0.int64(0), locale: try $0.textOrNil(1)) }
        return try rows.map { row in
            DeviceSample(device: row.device, locale: row.locale, fields: try self.fields(fields, of: row.device))
        }
    }

    fileprivate func fields(_ fields: [AudienceField], of device: Int64) throws -> [String?] {
        guard !fields.isEmpty else { return [] }
        var condition = AudienceCondition()
        condition.sql = "device.id = \(condition.add(device))"
        let columns = fields.map { field in
            let column = DeviceColumn(Self.dialect).printed(field) { Self.dialect.typed(condition.add($0), "text") }
            return "CAST(\(column) AS text)"
        }
        let found = try all(
            .once("SELECT \(columns.joined(separator: ", ")) FROM device WHERE \(condition.sql)"),
            values: condition.values
        ) { row in try fields.indices.map { try row.textOrNil($0) } }
        return found.first ?? fields.map { _ in nil }
    }
}
