import GRDB
package import Store
package import Model

extension SQLiteFileStore {
    /// Starts an import of members; `topic` nil takes devices of any. Hand over the batches with
    /// ``SegmentImport/append(_:)`` and end with ``SegmentImport/commit(now:)``: dropping it instead changes nothing.
    /// Removing from a segment that is not there is ``StoreError/noSuchSegment(_:suggestion:)``, importing into a
    /// dynamic one ``StoreError/segmentIsDynamic(_:)``.
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

    /// Defines a dynamic segment, or defines it anew: whoever `expression` selects when an audience names the segment,
    /// of the audience's topic. Nothing is written unless it compiles with every segment it names: cycles are
    /// ``StoreError/segmentCycle(_:)``, a name that has members is ``StoreError/segmentIsStatic(_:)``.
    package func defineSegment(
        _ name: String, source: String, expression: AudienceExpression, now: Timestamp
    ) async throws {
        try await write { db in
            try SegmentCatalog(db).define(name, source: source, expression, now: now)
            let count = try Self.count(.segment(name), now: now, db)
            try SegmentCatalog(db).setCount(count, of: name)
        }
    }

    /// By name. A dynamic segment is counted at `now`, over the whole device table; without it, its count is that of
    /// the moment it was defined.
    package func segments(now: Timestamp?) async throws -> [SegmentSummary] {
        try await read { db in
            let summaries = try Self.summaries(db, where: "TRUE", [:])
            guard let now else { return summaries }
            return try summaries.map { try Self.recounted($0, now: now, db) }
        }
    }

    /// One segment as it is now, with up to `sampleMax` of its devices.
    /// ``StoreError/noSuchSegment(_:suggestion:)`` names the nearest there is.
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

    private static func summaries(
        _ db: Database, where condition: String, _ arguments: StatementArguments
    ) throws -> [SegmentSummary] {
        try Row.fetchAll(
            db, sql: "SELECT name, source, kind, members, updated_at FROM segment WHERE \(condition) ORDER BY name",
            arguments: arguments
        ).map { row in
            SegmentSummary(
                name: row[0], kind: row[2] == 0 ? .static : .dynamic(source: row[1] ?? ""), count: row[3],
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

    private static func count(_ expression: AudienceExpression, now: Timestamp, _ db: Database) throws -> Int {
        let condition = try AudienceCompiler(db, now: now).condition(for: expression)
        return try Int.fetchOne(
            db, sql: "SELECT count(*) FROM device WHERE \(condition.sql)",
            arguments: StatementArguments(condition.arguments)) ?? 0
    }
}
