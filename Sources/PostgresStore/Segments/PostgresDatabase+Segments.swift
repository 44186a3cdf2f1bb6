import Model
package import Store

extension PostgresDatabase {
    package func importSegment(
        _ name: String, mode: SegmentImportMode, topic: String?
    ) async throws -> any SegmentImport {
        try await read(.short) { db in
            let catalog = SegmentCatalog(db)
            if try mode == .remove || catalog.find(name) != nil { _ = try catalog.requireStatic(name) }
        }
        return MemberImport(store: self, name: name, mode: mode, topic: topic)
    }
}
