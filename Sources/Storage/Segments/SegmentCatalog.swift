import GRDB
import Model

/// Segments by name.
struct SegmentCatalog {
    private let db: Database

    init(_ db: Database) {
        self.db = db
    }

    /// Throws ``StoreError/noSuchSegment(_:suggestion:)`` with the nearest name there is.
    func id(of name: String) throws -> Int64 {
        if let id = try find(name) { return id }
        let names = try String.fetchAll(db, sql: "SELECT name FROM segment")
        throw StoreError.noSuchSegment(name, suggestion: Suggestion.nearest(to: name, among: names))
    }

    func find(_ name: String) throws -> Int64? {
        try Int64.fetchOne(db, sql: "SELECT id FROM segment WHERE name = :name", arguments: ["name": name])
    }

    func make(_ name: String, now: Timestamp) throws -> Int64 {
        try db.execute(
            sql: "INSERT INTO segment (name, updated_at) VALUES (:name, :now) ON CONFLICT (name) DO NOTHING",
            arguments: ["name": name, "now": now.milliseconds])
        return try id(of: name)
    }
}
