import Model
import Store
import RelationalStore

/// Segments by name.
struct SegmentCatalog {
    private let db: PostgresSession

    init(_ db: PostgresSession) {
        self.db = db
    }

    /// For who deletes devices, or defines a segment: until the transaction ends nobody makes, defines or fills one. Those
    /// who only read segments are not held up.
    func hold() throws {
        try db.execute("LOCK TABLE segment IN SHARE ROW EXCLUSIVE MODE")
    }

    /// Throws ``StoreError/noSuchSegment(_:suggestion:)`` with the nearest name there is.
    func entry(of name: String) throws -> SegmentEntry {
        if let entry = try find(name) { return entry }
        let names = try db.all("SELECT name FROM segment") { try $0.text(0) }
        throw StoreError.noSuchSegment(name, suggestion: Suggestion.nearest(to: name, among: names))
    }

    func find(_ name: String) throws -> SegmentEntry? {
        guard StorableText.isWhole(name) else { return nil }
        return try db.first("SELECT id, expression FROM segment WHERE name = $1", name) { row in
            SegmentEntry(
                id: try row.int64(0),
                expression: try row.textOrNil(1).map { try SegmentExpressionText.expression($0, of: name) })
        }
    }

    /// The id of a static segment, ``StoreError/segmentIsDynamic(_:)`` for another.
    func requireStatic(_ name: String) throws -> Int64 {
        let entry = try entry(of: name)
        guard entry.expression == nil else { throw StoreError.segmentIsDynamic(name) }
        return entry.id
    }

    /// A static segment, made unless it is there.
    func make(_ name: String, now: Timestamp) throws -> Int64 {
        if try find(name) == nil {
            try db.execute(
                "INSERT INTO segment (name, updated_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING", name, now)
        }
        return try requireStatic(name)
    }

    /// Makes or changes a dynamic segment.
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
}
