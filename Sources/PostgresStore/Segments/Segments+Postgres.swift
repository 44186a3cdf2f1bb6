package import Model
package import Store
import RelationalStore

extension PostgresDatabase {
    /// Devices looked at for a page of a dynamic segment: some tens of milliseconds.
    private static let membersLookedAt: Int64 = 50_000

    package func importSegment(
        _ name: String, mode: SegmentImportMode, topic: String?
    ) async throws -> any SegmentImport {
        try await read(.short) { db in
            let catalog = SegmentCatalog(db)
            if try mode == .remove || catalog.find(name) != nil { _ = try catalog.requireStatic(name) }
        }
        return MemberImport(store: self, name: name, mode: mode, topic: topic)
    }

    package func defineSegment(
        _ name: String, source: String, expression: AudienceExpression, now: Timestamp
    ) async throws {
        // Before, since a transaction that counts keeps others from defining segments.
        let count = try await read(.expensive) { db in
            try Self.count(.segment(name), defining: (name, expression), now: now, db)
        }
        try await write(.quick) { db in
            // Two that are defined at once could each contain the other.
            let catalog = SegmentCatalog(db)
            try catalog.hold()
            try catalog.define(name, source: source, expression, now: now)
            // Others may have been defined meanwhile.
            _ = try AudienceCompiler(db, now: now).condition(for: .segment(name))
            try catalog.setCount(count, of: name)
        }
    }

    package func removeSegment(_ name: String, usedBy others: [String], now: Timestamp, by actor: Actor) async throws {
        try await write(.durable) { db in
            let catalog = SegmentCatalog(db)
            // No segment that names this one is defined meanwhile.
            try catalog.hold()
            let entry = try catalog.entry(of: name)
            let unfinished = RunState.unfinished.map { "'\($0.rawValue)'" }.joined(separator: ", ")
            try SegmentUsers.requireNone(
                of: name, others: others, rows: try Self.rows(db),
                runs: try RunRow.list(db, "WHERE NOT is_frozen AND state IN (\(unfinished)) ORDER BY id").map {
                    try $0.get()
                })
            try db.execute("DELETE FROM segment_member WHERE segment_id = $1", entry.id)
            try db.execute("DELETE FROM segment WHERE id = $1", entry.id)
            try EventLog.record(db, kind: .segmentRemoved, run: nil, actor: actor, detail: name, now: now)
        }
    }

    package func segments(now: Timestamp?) async throws -> [SegmentSummary] {
        try await read { db in
            let summaries = try Self.summaries(db)
            guard let now else { return summaries }
            return try summaries.map { summary in
                // One that cannot be read shows its stored count.
                try ReadableRows.of([summary]) { try Self.recounted($0, now: now, db) }.first ?? summary
            }
        }
    }

    package func segmentContents(of campaign: Campaign) async throws -> SegmentContents {
        try await read { db in try Self.contents(of: campaign, db) }
    }

    static func contents(of campaign: Campaign, _ db: PostgresSession) throws -> SegmentContents {
        try SegmentContents(of: campaign, among: rows(db))
    }

    private static func rows(_ db: PostgresSession) throws -> [SegmentContents.Row] {
        try db.all("SELECT name, source, expression, members_digest FROM segment") { row in
            SegmentContents.Row(
                name: try row.text(0), source: try row.textOrNil(1), expression: try row.textOrNil(2),
                members: try row.textOrNil(3) ?? "")
        }
    }

    package func segment(_ name: String, now: Timestamp, sampleMax: Int) async throws -> SegmentDetail {
        try await read { db in
            _ = try SegmentCatalog(db).entry(of: name)
            guard let summary = try Self.summaries(db, named: name).first else {
                throw StoreError.noSuchSegment(name, suggestion: nil)
            }
            let condition = try AudienceCompiler(db, now: now).condition(for: .segment(name))
            let sample = try Self.devices(where: condition, limit: sampleMax, db)
            return SegmentDetail(summary: try Self.recounted(summary, now: now, db), sample: sample)
        }
    }

    package func members(
        ofSegment name: String, after device: Int64, limit: Int, now: Timestamp
    ) async throws -> DevicePage {
        try await read { db in
            let entry = try SegmentCatalog(db).entry(of: name)
            if entry.expression == nil { return try Self.stored(entry.id, after: device, limit: limit, db) }
            return try Self.selected(.segment(name), after: device, limit: limit, now: now, db)
        }
    }

    /// Along the members' primary key.
    private static func stored(
        _ segment: Int64, after device: Int64, limit: Int, _ db: PostgresSession
    ) throws -> DevicePage {
        let select = StoredDeviceRow.select(
            where: """
                device.id IN (
                    SELECT device_id FROM segment_member WHERE segment_id = $1 AND device_id > $2
                    ORDER BY device_id LIMIT $3
                )
                """)
        let devices = try db.all("\(select)", segment, device, limit, read: StoredDeviceRow.device)
        return DevicePage(devices: devices, next: devices.count == limit ? devices.last?.id : nil)
    }

    private static func selected(
        _ expression: AudienceExpression, after device: Int64, limit: Int, now: Timestamp, _ db: PostgresSession
    ) throws -> DevicePage {
        var condition = try AudienceCompiler(db, now: now).condition(for: expression)
        let last = try db.first("SELECT coalesce(max(id), 0) FROM device") { try $0.int64(0) } ?? 0
        let end = min(last, device + membersLookedAt)
        condition.sql =
            "device.id > \(condition.add(device)) AND device.id <= \(condition.add(end)) AND \(condition.sql)"
        let devices = try devices(where: condition, limit: limit, db)
        if devices.count == limit { return DevicePage(devices: devices, next: devices.last?.id) }
        return DevicePage(devices: devices, next: end < last ? end : nil)
    }

    private static func devices(
        where condition: AudienceCondition, limit: Int, _ db: PostgresSession
    ) throws -> [StoredDevice] {
        try db.rows(
            .once("\(StoredDeviceRow.select(where: condition.sql)) LIMIT \(limit)"), values: condition.values
        ).map(StoredDeviceRow.device)
    }

    /// - Parameter name: nil: all.
    private static func summaries(_ db: PostgresSession, named name: String? = nil) throws -> [SegmentSummary] {
        try db.all(
            """
            SELECT name, source, kind, members, updated_at FROM segment
            WHERE $1::text IS NULL OR name = $1 ORDER BY name
            """, name
        ) { row in
            SegmentSummary(
                name: try row.text(0),
                kind: try row.int64(2) == StoredSegmentKind.static.rawValue
                    ? .static : .dynamic(source: try row.textOrNil(1) ?? ""),
                count: try row.int(3), updatedAt: try row.timestamp(4))
        }
    }

    private static func recounted(
        _ summary: SegmentSummary, now: Timestamp, _ db: PostgresSession
    ) throws -> SegmentSummary {
        guard summary.kind != .static else { return summary }
        var summary = summary
        summary.count = try count(.segment(summary.name), now: now, db)
        return summary
    }

    private static func count(
        _ expression: AudienceExpression, defining defined: (name: String, expression: AudienceExpression)? = nil,
        now: Timestamp, _ db: PostgresSession
    ) throws -> Int {
        let condition = try AudienceCompiler(db, now: now).condition(for: expression, defining: defined)
        return try db.rows(
            .once("SELECT count(*) FROM device WHERE \(condition.sql)"), values: condition.values
        ).first.map { try $0.int(0) } ?? 0
    }
}
