import GRDB
import Store
import Model
import Synchronization

/// An import of members in progress: nothing of it shows before ``commit(now:)``, and all of it after.
///
/// Batches wait in a temporary table of the writing connection; they vanish with the import or the process. One task
/// at a time.
final class MemberImport: SegmentImport {
    private let store: SQLiteFileStore
    private let id: Int64
    private let name: String
    private let mode: SegmentImportMode
    private let topic: String?
    private let counts = Mutex(SegmentImportCounts())

    init(store: SQLiteFileStore, id: Int64, name: String, mode: SegmentImportMode, topic: String?) {
        self.store = store
        self.id = id
        self.name = name
        self.mode = mode
        self.topic = topic
    }

    deinit {
        let id = id
        store.pool.asyncWriteWithoutTransaction { db in
            // Nobody is left to tell; rows of a dead import are harmless, since no other import reads them.
            _ = Result { try Self.forget(id, db) }
        }
    }

    /// Takes the next members, some thousands a call.
    package func append(_ keys: [SegmentMemberKey]) async throws {
        let id = id
        let topic = topic
        let unmatched = try await store.write { db in
            var stage = try SegmentStage(db, segmentImport: id, topic: topic)
            return try keys.reduce(0) { try stage.add($1) ? $0 : $0 + 1 }
        }
        counts.withLock {
            $0.read += keys.count
            $0.unmatched += unmatched
        }
    }

    /// Makes the change, in one transaction.
    package func commit(now: Timestamp) async throws -> SegmentImportCounts {
        let (id, name, mode) = (id, name, mode)
        let before = counts.withLock { $0 }
        return try await store.write { db in
            var counts = before
            let catalog = SegmentCatalog(db)
            let segment = mode == .remove ? try catalog.requireStatic(name) : try catalog.make(name, now: now)
            try SegmentStage.apply(id, to: segment, mode, db, &counts)
            try db.execute(
                sql: """
                    UPDATE segment SET
                        members = (SELECT count(*) FROM segment_member WHERE segment_id = :segment), updated_at = :now
                    WHERE id = :segment
                    """, arguments: ["segment": segment, "now": now.milliseconds])
            try Self.forget(id, db)
            return counts
        }
    }

    private static func forget(_ id: Int64, _ db: Database) throws {
        try db.execute(sql: "DELETE FROM temp.segment_stage WHERE import_id = :id", arguments: ["id": id])
    }
}
