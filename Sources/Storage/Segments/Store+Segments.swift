import GRDB
import Model

extension Store {
    /// Starts an import of members; `topic` nil takes devices of any. Hand over the batches with
    /// ``SegmentImport/append(_:)`` and end with ``SegmentImport/commit(now:)``: dropping it instead changes nothing.
    /// Removing from a segment that is not there is ``StoreError/noSuchSegment(_:suggestion:)``.
    package func importSegment(
        _ name: String, mode: SegmentImportMode, topic: String? = nil
    ) async throws -> SegmentImport {
        let id = try await write { db in
            if mode == .remove { _ = try SegmentCatalog(db).id(of: name) }
            return try SegmentStage.begin(db)
        }
        return SegmentImport(store: self, id: id, name: name, mode: mode, topic: topic)
    }

    package func segments() async throws -> [SegmentSummary] {
        try await read { db in
            try Row.fetchAll(db, sql: "SELECT name, members, updated_at FROM segment ORDER BY name").map { row in
                SegmentSummary(name: row[0], count: row[1], updatedAt: Timestamp(milliseconds: row[2]))
            }
        }
    }
}
