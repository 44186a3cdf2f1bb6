import GRDB
import Store
import Model

/// The temporary table an import of members is gathered in.
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

    /// False when no device is stored for the key.
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

    /// A member given twice is written twice, so that a key that names a device always counts as matched.
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
