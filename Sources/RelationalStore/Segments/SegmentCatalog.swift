package import Model
package import Store

/// Segments by name.
package struct SegmentCatalog<Session: SQLSession> {
    private let db: Session

    package init(_ db: Session) { self.db = db }

    /// Locks all segments. Until the transaction ends, no other transaction creates, defines or fills a segment.
    /// Readers are not blocked. Call it before devices are deleted or a segment is defined.
    ///
    /// Fails as busy after a second. An import of members may hold the lock for minutes while it commits, and a caller
    /// that waits for it holds a connection that leases and settlements need, and locks that registrations need.
    package func hold() throws { try db.lock(table: "segment", within: .seconds(1)) }

    /// Returns a segment. If there is none, throws ``StoreError/noSuchSegment(_:suggestion:)`` with the most similar
    /// existing name.
    package func entry(of name: String) throws -> SegmentEntry {
        if let entry = try find(name) { return entry }
        let names = try db.all("SELECT name FROM segment") { try $0.text(0) }
        throw StoreError.noSuchSegment(name, suggestion: Suggestion.nearest(to: name, among: names))
    }

    package func find(_ name: String) throws -> SegmentEntry? {
        // No stored name contains NUL, and PostgreSQL accepts no text that does.
        guard !name.utf8.contains(0) else { return nil }
        return try db.first("SELECT id, expression FROM segment WHERE name = $1", name) { row in
            SegmentEntry(
                id: try row.int64(0),
                expression: try row.textOrNil(1).map { try SegmentExpressionText.expression($0, of: name) })
        }
    }

    /// Returns the id of a static segment. Throws ``StoreError/segmentIsDynamic(_:)`` for a dynamic one.
    package func requireStatic(_ name: String) throws -> Int64 {
        let entry = try entry(of: name)
        guard entry.expression == nil else { throw StoreError.segmentIsDynamic(name) }
        return entry.id
    }

    /// Returns the id of a static segment, and creates the segment if it does not exist.
    package func make(_ name: String, now: Timestamp) throws -> Int64 {
        if try find(name) == nil {
            try db.execute(
                "INSERT INTO segment (name, updated_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING", name, now)
        }
        return try requireStatic(name)
    }

    /// Creates or changes a dynamic segment.
    func define(_ name: String, source: String, _ expression: AudienceExpression, now: Timestamp) throws {
        if let known = try find(name), known.expression == nil { throw StoreError.segmentIsStatic(name) }
        try db.execute(
            """
            INSERT INTO segment (name, kind, source, expression, updated_at)
            VALUES ($1, \(StoredSegmentKind.dynamic.rawValue), $2, $3, $4)
            ON CONFLICT (name) DO UPDATE SET
                source = excluded.source, expression = excluded.expression, updated_at = excluded.updated_at
            """, name, source, try SegmentExpressionText.json(expression), now)
    }

    func setCount(_ count: Int, of name: String) throws {
        try db.execute("UPDATE segment SET members = $2 WHERE name = $1", name, count)
    }

    package func rows() throws -> [SegmentContents.Row] {
        try db.all("SELECT name, source, expression, members_digest FROM segment") { row in
            SegmentContents.Row(
                name: try row.text(0), source: try row.textOrNil(1), expression: try row.textOrNil(2),
                members: try row.textOrNil(3) ?? "")
        }
    }

    /// Returns the summaries of segments.
    ///
    /// - Parameter name: the segment's name; `nil` for all segments.
    func summaries(named name: String? = nil) throws -> [SegmentSummary] {
        try db.all(
            """
            SELECT name, source, kind, members, updated_at FROM segment WHERE $1 IS NULL OR name = $1 ORDER BY name
            """, name
        ) { row in
            SegmentSummary(
                name: try row.text(0),
                kind: try row.int64(2) == StoredSegmentKind.static.rawValue
                    ? .static : .dynamic(source: try row.textOrNil(1) ?? ""),
                count: try row.int(3), updatedAt: try row.timestamp(4))
        }
    }

    func recounted(_ summary: SegmentSummary, now: Timestamp) throws -> SegmentSummary {
        guard summary.kind != .static else { return summary }
        var summary = summary
        summary.count = try db.count(.segment(summary.name), defining: nil, now: now)
        return summary
    }
}
