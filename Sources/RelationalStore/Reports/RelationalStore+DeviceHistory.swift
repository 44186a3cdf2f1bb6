import Model
package import Store

/// The number of latest runs without the device for which the reason is looked up.
private let reasonsMax = 50

extension RelationalStore {
    package func history(ofDevice device: Int64, limit: Int) async throws -> [DeviceDelivery] {
        // This reads runs from the newest back to those that had the device, which may be the oldest runs.
        try await snapshot(.expensive) { db in try db.history(ofDevice: device, had: limit, leftOut: 0).had }
    }

    package func history(ofDevice device: Int64, runsMax: Int) async throws -> DeviceHistory? {
        try await snapshot(.expensive) { db in
            guard let stored = try StoredDevices(db).find(device) else { return nil }
            var history = DeviceHistory(device: stored)
            history.oldTokens = try db.oldTokens(of: device)
            let runs = try db.history(ofDevice: device, had: runsMax, leftOut: runsMax)
            history.isCut = runs.had.count == runsMax || runs.leftOut.count == runsMax
            for delivery in runs.had {
                history.entries += try RunRow.list(db, "WHERE id = $1", delivery.run).readable
                    .map { run in
                        var entry = DeviceHistory.Entry(run: run, delivery: delivery)
                        entry.hour = try db.hour(of: device, in: run)
                        return entry
                    }
            }
            var reasons = 0
            for run in try runs.leftOut.flatMap({ try RunRow.list(db, "WHERE id = $1", $0).readable })
            where run.definition.campaign.deviceTopic == stored.record.topic {
                let prunedAt = try OutcomeSummary(db, run.id).prunedAt()
                reasons += prunedAt == nil ? 1 : 0
                let unmet = prunedAt == nil && reasons <= reasonsMax ? try db.unmet(run, by: device) : nil
                history.entries.append(
                    DeviceHistory.Entry(run: run, delivery: nil, prunedAt: prunedAt, unmet: unmet))
            }
            history.entries.sort { $0.run.id < $1.run.id }
            history.silentPushes = try db.all("SELECT settled_at FROM silent_ledger WHERE device_id = $1", device) {
                try $0.timestampOrNil(0)
            }
            history.cappedPushes = try db.cappedPushes(of: stored)
            return history
        }
    }
}

extension SQLSession {
    fileprivate func history(
        ofDevice device: Int64, had: Int, leftOut: Int
    ) throws -> (had: [DeviceDelivery], leftOut: [Int64]) {
        var runs = try runs(ofDevice: device, had: had, leftOut: leftOut)
        for index in runs.had.indices where runs.had[index].outcome.state == .pending {
            runs.had[index].isLeased = try isLeased(runs.had[index])
        }
        return runs
    }

    /// Returns the conditions of a run's audience that a device's present data do not meet. Times are relative to the
    /// start of the run. Returns `nil` if the audience is no expression, or can no longer be resolved.
    fileprivate func unmet(_ run: Run, by device: Int64) throws -> [AudienceExpression]? {
        let campaign = run.definition.campaign
        guard campaign.audienceSQL == nil, run.definition.correction == nil else { return nil }
        do {
            return try campaign.audience.expression.conditions.filter {
                try devices(of: $0, within: device...device, limit: 1, now: run.createdAt).isEmpty
            }
        } catch let error as StoreError where !error.isPassing {
            // A segment was removed since.
            return nil
        }
    }

    /// Returns the device's turn in a run with `best_hour`; `nil` if it has none.
    fileprivate func hour(of device: Int64, in run: Run) throws -> DeviceHistory.Hour? {
        guard run.definition.bestHours != nil else { return nil }
        let wave =
            try all(
                .once(
                    """
                    SELECT wave FROM \(Self.dialect.deliveries(of: run.id, as: "delivery"))
                    WHERE \(Self.dialect.isOf(run: run.id, "delivery")) AND device_id = $1 AND NOT \(FrozenOut.condition)
                    """), values: [device]
            ) { try $0.timestampOrNil(0) }.first ?? nil
        guard let wave, let waves = RecipientWaves(run.definition, startedAt: run.startedAt ?? run.createdAt) else {
            return nil
        }
        return DeviceHistory.Hour(wave: wave, opens: try opens(of: device, ZoneClocks(waves).span))
    }

    /// Returns whether a lease holds the delivery: its lease number is above the number of ended leases in the row.
    private func isLeased(_ delivery: DeviceDelivery) throws -> Bool {
        let device = delivery.outcome.device
        let ended = try all(
            .once(
                """
                SELECT leases FROM \(Self.dialect.deliveries(of: delivery.run))
                WHERE \(Self.dialect.isOf(run: delivery.run)) AND device_id = $1
                """), values: [device]
        ) { try $0.int(0) }.first
        return try all("SELECT entries FROM lease WHERE run_id = $1", delivery.run) { row in
            LeaseEntry.unpack(try row.bytes(0)).contains { $0.device == device && $0.number > ended ?? 0 }
        }.contains(true)
    }

    fileprivate func oldTokens(of device: Int64) throws -> [DeviceHistory.OldToken] {
        try all(
            """
            SELECT token_generation, token, environment, replaced_at FROM token_history
            WHERE device_id = $1 ORDER BY token_generation
            """, device
        ) { row in
            guard let token = DeviceToken(bytes: try row.bytes(1)) else { return nil }
            return DeviceHistory.OldToken(
                generation: try row.int(0), token: token, environment: PushEnvironment(code: try row.int64(2)),
                replacedAt: try row.timestamp(3))
        }.compactMap(\.self)
    }
}
