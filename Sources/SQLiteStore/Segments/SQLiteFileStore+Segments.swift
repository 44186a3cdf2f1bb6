import GRDB
import Model
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
}
