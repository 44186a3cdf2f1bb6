import GRDB
import Store
import Model

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
                VALUES (:name, 1, :source, :expression, :now)
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
