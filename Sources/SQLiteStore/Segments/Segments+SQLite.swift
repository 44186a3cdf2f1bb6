import GRDB
package import Model
import RelationalStore
package import Store

extension SQLiteFileStore {
    package func importSegment(
        _ name: String, mode: SegmentImportMode, topic: String?
    ) async throws -> any SegmentImport {
        let id = try await write { db in
            let catalog = SegmentCatalog(db)
            if try mode == .remove || catalog.find(name) != nil { _ = try catalog.requireStatic(name) }
            return try SegmentStage.begin(db)
        }
        return MemberImport(store: self, id: id, name: name, mode: mode, topic: topic)
    }

    package func defineSegment(
        _ name: String, source: String, expression: AudienceExpression, now: Timestamp
    ) async throws {
        // Before, since nothing else is written while a transaction counts.
        let count = try await read(.expensive) { db in
            try Self.count(.segment(name), defining: (name, expression), now: now, db)
        }
        try await write { db in
            try SegmentCatalog(db).define(name, source: source, expression, now: now)
            // Others may have been defined meanwhile.
            _ = try AudienceCompiler(db, now: now).condition(for: .segment(name))
            try SegmentCatalog(db).setCount(count, of: name)
        }
    }

    package func removeSegment(_ name: String, usedBy others: [String], now: Timestamp, by actor: Actor) async throws {
        try await write { db in
            let entry = try SegmentCatalog(db).entry(of: name)
            let waiting = "WHERE NOT is_frozen AND state IN (\(SQLConstants.list(RunState.unfinished))) ORDER BY id"
            try SegmentUsers.requireNone(
                of: name, others: others, rows: try Self.rows(db),
                runs: try RunRow.list(db, waiting).map { try $0.get() })
            try db.execute(sql: "DELETE FROM segment_member WHERE segment_id = :id", arguments: ["id": entry.id])
            try db.execute(sql: "DELETE FROM segment WHERE id = :id", arguments: ["id": entry.id])
            try EventLog.record(db, kind: .segmentRemoved, run: nil, actor: actor, detail: name, now: now)
        }
    }

    package func segments(now: Timestamp?) async throws -> [SegmentSummary] {
        try await read { db in
            let summaries = try Self.summaries(db, where: "TRUE", [:])
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

    static func contents(of campaign: Campaign, _ db: Database) throws -> SegmentContents {
        try SegmentContents(of: campaign, among: rows(db))
    }

    private static func rows(_ db: Database) throws -> [SegmentContents.Row] {
        try Row.fetchAll(db, sql: "SELECT name, source, expression, members_digest FROM segment").map { row in
            SegmentContents.Row(name: row[0], source: row[1], expression: row[2], members: row[3] ?? "")
        }
    }

    package func segment(_ name: String, now: Timestamp, sampleMax: Int) async throws -> SegmentDetail {
        try await read { db in
            _ = try SegmentCatalog(db).entry(of: name)
            let summaries = try Self.summaries(db, where: "name = :name", ["name": name])
            guard let summary = summaries.first else { throw StoreError.noSuchSegment(name, suggestion: nil) }
            let condition = try AudienceCompiler(db, now: now).condition(for: .segment(name))
            let sample = try Row.fetchAll(
                db, sql: StoredDeviceRow.select(where: condition.sql) + " LIMIT \(sampleMax)",
                arguments: StatementArguments(condition.arguments)
            ).map(StoredDeviceRow.device)
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
    private static func stored(_ segment: Int64, after device: Int64, limit: Int, _ db: Database) throws -> DevicePage {
        let devices = try Row.fetchAll(
            db,
            sql: StoredDeviceRow.select(
                where: """
                    device.id IN (
                        SELECT device_id FROM segment_member WHERE segment_id = :segment AND device_id > :after
                        ORDER BY device_id LIMIT :limit
                    )
                    """), arguments: ["segment": segment, "after": device, "limit": limit]
        ).map(StoredDeviceRow.device)
        return DevicePage(devices: devices, next: devices.count == limit ? devices.last?.id : nil)
    }

    private static func selected(
        _ expression: AudienceExpression, after device: Int64, limit: Int, now: Timestamp, _ db: Database
    ) throws -> DevicePage {
        let condition = try AudienceCompiler(db, now: now).condition(for: expression)
        let last = try Int64.fetchOne(db, sql: "SELECT max(id) FROM device") ?? 0
        let end = min(last, device + StoreLimits.membersLookedAt)
        var arguments = StatementArguments(condition.arguments)
        arguments += ["after": device, "end": end]
        let devices = try Row.fetchAll(
            db,
            sql: StoredDeviceRow.select(where: "device.id > :after AND device.id <= :end AND \(condition.sql)")
                + " LIMIT \(limit)", arguments: arguments
        ).map(StoredDeviceRow.device)
        if devices.count == limit { return DevicePage(devices: devices, next: devices.last?.id) }
        return DevicePage(devices: devices, next: end < last ? end : nil)
    }

    private static func summaries(
        _ db: Database, where condition: String, _ arguments: StatementArguments
    ) throws -> [SegmentSummary] {
        try Row.fetchAll(
            db, sql: "SELECT name, source, kind, members, updated_at FROM segment WHERE \(condition) ORDER BY name",
            arguments: arguments
        ).map { row in
            SegmentSummary(
                name: row[0],
                kind: row[2] == StoredSegmentKind.static.rawValue ? .static : .dynamic(source: row[1] ?? ""),
                count: row[3],
                updatedAt: Timestamp(milliseconds: row[4]))
        }
    }

    private static func recounted(
        _ summary: SegmentSummary, now: Timestamp, _ db: Database
    ) throws -> SegmentSummary {
        guard summary.kind != .static else { return summary }
        var summary = summary
        summary.count = try count(.segment(summary.name), now: now, db)
        return summary
    }

    private static func count(
        _ expression: AudienceExpression, defining defined: (name: String, expression: AudienceExpression)? = nil,
        now: Timestamp, _ db: Database
    ) throws -> Int {
        let condition = try AudienceCompiler(db, now: now).condition(for: expression, defining: defined)
        return try Int.fetchOne(
            db, sql: "SELECT count(*) FROM device WHERE \(condition.sql)",
            arguments: StatementArguments(condition.arguments)) ?? 0
    }
}

/// Segments by name.
struct SegmentCatalog {
    private let db: Database

    init(_ db: Database) {
        self.db = db
    }

    /// Throws ``StoreError/noSuchSegment(_:suggestion:)`` with the nearest name there is.
    func entry(of name: String) throws -> SegmentEntry {
        if let entry = try find(name) { return entry }
        let names = try String.fetchAll(db, sql: "SELECT name FROM segment")
        throw StoreError.noSuchSegment(name, suggestion: Suggestion.nearest(to: name, among: names))
    }

    func find(_ name: String) throws -> SegmentEntry? {
        let row = try Row.fetchOne(
            db, sql: "SELECT id, expression FROM segment WHERE name = :name", arguments: ["name": name])
        guard let row else { return nil }
        let json: String? = row[1]
        return SegmentEntry(
            id: row[0], expression: try json.map { try SegmentExpressionText.expression($0, of: name) })
    }

    /// The id of a static segment, ``StoreError/segmentIsDynamic(_:)`` for another.
    func requireStatic(_ name: String) throws -> Int64 {
        let entry = try entry(of: name)
        guard entry.expression == nil else { throw StoreError.segmentIsDynamic(name) }
        return entry.id
    }

    /// A static segment, made unless it is there.
    func make(_ name: String, now: Timestamp) throws -> Int64 {
        try db.execute(
            sql: "INSERT INTO segment (name, updated_at) VALUES (:name, :now) ON CONFLICT (name) DO NOTHING",
            arguments: ["name": name, "now": now.milliseconds])
        return try requireStatic(name)
    }

    /// Makes or changes a dynamic segment.
    func define(_ name: String, source: String, _ expression: AudienceExpression, now: Timestamp) throws {
        if let known = try find(name), known.expression == nil { throw StoreError.segmentIsStatic(name) }
        try db.execute(
            sql: """
                INSERT INTO segment (name, kind, source, expression, updated_at)
                VALUES (:name, \(StoredSegmentKind.dynamic.rawValue), :source, :expression, :now)
                ON CONFLICT (name) DO UPDATE SET
                    source = excluded.source, expression = excluded.expression, updated_at = excluded.updated_at
                """,
            arguments: [
                "name": name, "source": source, "expression": try SegmentExpressionText.json(expression),
                "now": now.milliseconds,
            ])
    }

    func setCount(_ count: Int, of name: String) throws {
        try db.execute(
            sql: "UPDATE segment SET members = :count WHERE name = :name", arguments: ["name": name, "count": count])
    }
}
