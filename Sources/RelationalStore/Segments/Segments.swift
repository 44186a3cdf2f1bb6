package import Model
package import Store

extension RelationalStore {
    package func defineSegment(
        _ name: String, source: String, expression: AudienceExpression, now: Timestamp, event: SegmentEvent?
    ) async throws {
        // Count first. Counting in the transaction below would block other definitions of segments, and on SQLite
        // all other writes.
        let count = try await snapshot(.expensive) { db in
            try db.count(.segment(name), defining: (name, expression), now: now)
        }
        try await transaction(.durableOnServer) { db in
            // Two segments that are defined at the same time could otherwise contain each other.
            let catalog = SegmentCatalog(db)
            try catalog.hold()
            try catalog.define(name, source: source, expression, now: now)
            // Other segments may have been defined in the meantime.
            try db.requireUsable(.segment(name), now: now)
            try catalog.setCount(count, of: name)
            if let event { try db.record(.segmentDefined, by: event.actor, event.detail, now: now) }
        }
    }

    package func removeSegment(_ name: String, usedBy others: [String], now: Timestamp, by actor: Actor) async throws {
        try await transaction(.durableOnServer) { db in
            let catalog = SegmentCatalog(db)
            // The lock prevents the definition of a new segment that refers to this one.
            try catalog.hold()
            let entry = try catalog.entry(of: name)
            try SegmentUsers.requireNone(
                of: name, others: others, rows: try catalog.rows(),
                runs: try RunRow.list(db, Self.waitingRuns).map { try $0.get() })
            try db.execute("DELETE FROM segment_member WHERE segment_id = $1", entry.id)
            try db.execute("DELETE FROM segment WHERE id = $1", entry.id)
            try db.record(.segmentRemoved, by: actor, name, now: now)
        }
    }

    package func segmentUsers(of names: [String]) async throws -> [String: [String]] {
        try await snapshot(.short) { db in
            let rows = try SegmentCatalog(db).rows().filter { (try? $0.expression?.get()) != nil }
            let runs = try RunRow.list(db, Self.waitingRuns).compactMap { try? $0.get() }
            var users: [String: [String]] = [:]
            for name in names { users[name] = try SegmentUsers.users(of: name, rows: rows, runs: runs) }
            return users
        }
    }

    /// The condition of runs that have not chosen their devices yet.
    private static var waitingRuns: String {
        "WHERE NOT is_frozen AND state IN (\(SQLConstants.list(RunState.unfinished))) ORDER BY id"
    }

    package func segments(now: Timestamp?) async throws -> [SegmentSummary] {
        try await snapshot(.expensive) { db in
            let catalog = SegmentCatalog(db)
            let summaries = try catalog.summaries()
            guard let now else { return summaries }
            return try summaries.map { summary in
                // If a segment cannot be read, show its stored count.
                try ReadableRows.of([summary]) { try catalog.recounted($0, now: now) }.first ?? summary
            }
        }
    }

    package func segmentContents(of campaign: Campaign) async throws -> SegmentContents {
        try await snapshot(.expensive) { db in try SegmentContents(of: campaign, db) }
    }

    package func segment(_ name: String, now: Timestamp, sampleMax: Int) async throws -> SegmentDetail {
        try await snapshot(.expensive) { db in
            let catalog = SegmentCatalog(db)
            _ = try catalog.entry(of: name)
            guard let summary = try catalog.summaries(named: name).first else {
                throw StoreError.noSuchSegment(name, suggestion: nil)
            }
            return SegmentDetail(
                summary: try catalog.recounted(summary, now: now),
                sample: try db.devices(of: .segment(name), within: nil, limit: sampleMax, now: now))
        }
    }

    package func members(
        ofSegment name: String, after device: Int64, limit: Int, now: Timestamp
    ) async throws -> DevicePage {
        try await snapshot(.expensive) { db in
            let entry = try SegmentCatalog(db).entry(of: name)
            if entry.expression == nil {
                let devices = try db.members(of: entry.id, after: device, limit: limit)
                return DevicePage(devices: devices, next: devices.count == limit ? devices.last?.id : nil)
            }
            let last = try db.first("SELECT coalesce(max(id), 0) FROM device") { try $0.int64(0) } ?? 0
            let end = min(last, device + SegmentLimits.membersLookedAt)
            guard device < end else { return DevicePage(devices: [], next: nil) }
            let devices = try db.devices(of: .segment(name), within: (device + 1)...end, limit: limit, now: now)
            if devices.count == limit { return DevicePage(devices: devices, next: devices.last?.id) }
            return DevicePage(devices: devices, next: end < last ? end : nil)
        }
    }
}

extension SegmentContents {
    package init(of campaign: Campaign, _ db: some SQLSession) throws {
        try self.init(of: campaign, among: SegmentCatalog(db).rows())
    }
}

private enum SegmentLimits {
    /// The maximum number of devices read for a page of a dynamic segment. This takes some tens of milliseconds.
    static let membersLookedAt: Int64 = 50_000
}
