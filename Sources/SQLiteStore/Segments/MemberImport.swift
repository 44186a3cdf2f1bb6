import GRDB
import Model
import Platform
import Store
import Synchronization

/// An import of members in progress. Its changes become visible together, at ``commit(now:)``.
///
/// Batches are stored in a temporary table of the writing connection; they vanish with the import or the process. Used
/// by one task at a time.
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
            // Ignore an error, because no caller waits for this. The rows of an ended import are harmless, since no
            // other import reads them.
            _ = Result { try Self.forget(id, db) }
        }
    }

    /// Appends the next members, some thousands per call.
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

    /// Applies the change in one transaction.
    package func commit(
        now: Timestamp, event: (@Sendable (SegmentImportCounts) -> SegmentEvent)?
    ) async throws -> SegmentImportCounts {
        let (id, name, mode) = (id, name, mode)
        let before = counts.withLock { $0 }
        return try await store.write { db in
            var counts = before
            let catalog = SegmentCatalog(db)
            let segment = mode == .remove ? try catalog.requireStatic(name) : try catalog.make(name, now: now)
            try SegmentStage.apply(id, to: segment, mode, db, &counts)
            let members = try MemberDigest(of: segment, db)
            try db.execute(
                sql: """
                    UPDATE segment SET members = :count, members_digest = :digest, updated_at = :now
                    WHERE id = :segment
                    """,
                arguments: [
                    "segment": segment, "count": members.count, "digest": members.text, "now": now.milliseconds,
                ])
            try Self.forget(id, db)
            if let event = event?(counts) { try db.record(.segmentChanged, by: event.actor, event.detail, now: now) }
            return counts
        }
    }

    private static func forget(_ id: Int64, _ db: Database) throws {
        try db.execute(sql: "DELETE FROM temp.segment_stage WHERE import_id = :id", arguments: ["id": id])
    }
}

/// The digest of a static segment's members, as ``SegmentContents`` compares them.
private struct MemberDigest {
    let count: Int
    let text: String

    /// Reads every member once, in order of id.
    init(of segment: Int64, _ db: Database) throws {
        var members = 0
        let digest = try Digest.sha256 { add in
            let ids = try Int64.fetchCursor(
                db, sql: "SELECT device_id FROM segment_member WHERE segment_id = :segment ORDER BY device_id",
                arguments: ["segment": segment])
            while let id = try ids.next() {
                members += 1
                withUnsafeBytes(of: id.bigEndian) { add($0) }
            }
        }
        guard let digest else { throw DatabaseError(resultCode: .SQLITE_NOMEM) }
        count = members
        text = "\(count) " + Hex.text(digest)
    }
}

/// The temporary table that collects an import of members.
struct SegmentStage {
    private let segmentImport: Int64
    private let topic: String?
    private let byInstallation: RowStatement
    private let byUser: RowStatement
    private let byToken: RowStatement

    init(_ db: Database, segmentImport: Int64, topic: String?) throws {
        self.segmentImport = segmentImport
        self.topic = topic
        byInstallation = try RowStatement(db, Self.insertion(where: "installation_id = :key"))
        byUser = try RowStatement(db, Self.insertion(where: "user_id = :key"))
        byToken = try RowStatement(db, Self.insertion(where: "token = :key"))
    }

    /// Returns the number of a new import.
    static func begin(_ db: Database) throws -> Int64 {
        try db.execute(
            sql: """
                CREATE TEMP TABLE IF NOT EXISTS segment_stage (
                    import_id INTEGER NOT NULL,
                    device_id INTEGER NOT NULL,
                    PRIMARY KEY (import_id, device_id)
                ) STRICT, WITHOUT ROWID;
                CREATE TEMP TABLE IF NOT EXISTS segment_import (id INTEGER PRIMARY KEY AUTOINCREMENT) STRICT;
                INSERT INTO temp.segment_import DEFAULT VALUES;
                """)
        return db.lastInsertedRowID
    }

    /// Returns `false` if no device is stored for the key.
    mutating func add(_ key: SegmentMemberKey) throws -> Bool {
        switch key {
        case .installation(let id): try add(byInstallation) { try byInstallation.bind(id, $0) }
        case .user(let id): try add(byUser) { try byUser.bind(id, $0) }
        case .token(let token): try add(byToken) { try byToken.bind(token.bytes, $0) }
        }
    }

    private func add(_ statement: RowStatement, bindKey: (Int32) throws -> Void) throws -> Bool {
        try statement.bind(segmentImport, statement.parameter(":import"))
        try statement.bind(topic, statement.parameter(":topic"))
        try bindKey(statement.parameter(":key"))
        try statement.run()
        return statement.changes > 0
    }

    /// Returns the statement that adds a member. A repeated member is written again, so that a key that names a device
    /// always counts as matched.
    private static func insertion(where condition: String) -> String {
        """
        INSERT OR REPLACE INTO temp.segment_stage (import_id, device_id)
        SELECT :import, id FROM device
        WHERE \(condition) AND (:topic IS NULL OR topic_id = (SELECT id FROM topic WHERE name = :topic))
        """
    }

    static func apply(
        _ segmentImport: Int64, to segment: Int64, _ mode: SegmentImportMode, _ db: Database,
        _ counts: inout SegmentImportCounts
    ) throws {
        let arguments: StatementArguments = ["segment": segment, "import": segmentImport]
        let known = try Int.fetchOne(
            db,
            sql: """
                SELECT count(*) FROM temp.segment_stage AS stage
                JOIN segment_member ON segment_id = :segment AND segment_member.device_id = stage.device_id
                WHERE import_id = :import
                """, arguments: arguments)
        if mode != .remove {
            counts.alreadyIn = known ?? 0
            try db.execute(
                sql: """
                    INSERT OR IGNORE INTO segment_member (segment_id, device_id)
                    SELECT :segment, device_id FROM temp.segment_stage
                    WHERE import_id = :import AND device_id IN (SELECT id FROM device)
                    """, arguments: arguments)
            counts.added = db.changesCount
        }
        guard mode != .add else { return }
        try db.execute(sql: removal(mode), arguments: arguments)
        counts.removed = db.changesCount
        guard mode == .remove else { return }
        counts.alreadyIn =
            try Int.fetchOne(
                db, sql: "SELECT count(*) FROM segment_member WHERE segment_id = :segment",
                arguments: ["segment": segment]) ?? 0
    }

    private static func removal(_ mode: SegmentImportMode) -> String {
        let staged = "(SELECT device_id FROM temp.segment_stage WHERE import_id = :import)"
        return mode == .remove
            ? "DELETE FROM segment_member WHERE segment_id = :segment AND device_id IN \(staged)"
            : "DELETE FROM segment_member WHERE segment_id = :segment AND device_id NOT IN \(staged)"
    }
}
