import Foundation
import GRDB
import GRDBSQLite
import RelationalStore
import Store

/// The numbered migrations. `user_version` of the file is the number of applied migrations. A released migration is
/// never edited.
enum Schema {
    static let migrations: [String] = [
        SchemaVersion1.sql, SchemaVersion2.sql, SchemaVersion3.sql, SchemaVersion4.sql, SchemaVersion5.sql,
        SchemaVersion6.sql, SchemaVersion7.sql, SchemaVersion8.sql, ProvenFirstSchema.sql(.sqlite),
        SavedPlanSchema.sql(.sqlite), ApprovalNoteSchema.sql(.sqlite),
        InvitationSchema.sql(.sqlite) + OccurrenceValueSchema.sql(.sqlite), FeedbackSchema.sql(.sqlite),
        InstallationSecretSchema.sql(.sqlite) + FeedbackViewSchema.sql(.sqlite),
        WaitingFeedbackSchema.sql(.sqlite), RestoredRunSchema.sql(.sqlite), FeedbackRemovalSchema.sql(.sqlite),
    ]

    static var version: Int { migrations.count }

    /// Applies the missing migrations, each in a separate transaction; safe if two processes start together. A store
    /// that has data to lose is first copied beside itself. If the copy fails, the store stays as it was. One process
    /// does this at a time: the others throw ``StoreError/upgrading(_:)``.
    ///
    /// - Parameter tell: receives a message before the copy, which may take minutes.
    static func migrate(
        _ pool: DatabasePool, path: String, _ migrations: [String] = migrations, tell: (String) -> Void = { _ in }
    ) throws {
        let found = try pool.read(version)
        if found == 0 { try makeShrinkable(pool) }
        guard found > 0, found < migrations.count else { return try apply(migrations, to: pool) }
        try UpgradeLock.hold(path) {
            // Another process may have upgraded the store just before.
            let found = try pool.read(version)
            guard found < migrations.count else { return }
            tell(
                "upgrading the store, which is from an older version of Fanfare; first copying it to a backup beside it, "
                    + "which takes about 20 s for each gigabyte")
            try backUp(pool, path: path, version: found)
            try apply(migrations, to: pool)
        }
    }

    private static func apply(_ migrations: [String], to pool: DatabasePool) throws {
        for (index, sql) in migrations.enumerated() {
            try pool.write { db in
                guard try version(db) <= index else { return }
                try db.execute(sql: sql)
                if index == 0 { try makeNamespace(db) }
                if index == 2 { try EventChain(db).adopt() }
                try db.execute(sql: "PRAGMA user_version = \(index + 1)")
            }
        }
    }

    /// Returns whether the file is a store of an older version, and not a new file.
    static func isOlder(_ db: Database) throws -> Bool { try 1..<version ~= version(db) }

    /// Throws if a newer program has migrated the store since this one opened it. Call it in each transaction.
    static func requireKnown(_ db: Database) throws {
        let found = try Int.fetchOne(db.cachedStatement(sql: "PRAGMA user_version")) ?? 0
        guard found <= version else {
            let path = sqlite3_db_filename(db.sqliteConnection, "main").map { String(cString: $0) } ?? ""
            throw StoreError.newerVersion(path: path, found: found, known: version)
        }
    }

    /// The value of `auto_vacuum` with which free pages are released a few at a time.
    static let incrementalVacuum = 2

    /// Makes the file shrinkable. This is possible only before the first table; later it needs a rewrite of the file.
    private static func makeShrinkable(_ pool: DatabasePool) throws {
        try pool.writeWithoutTransaction { db in
            guard try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema") == 0 else { return }
            try db.execute(sql: "PRAGMA auto_vacuum = \(incrementalVacuum)")
            try db.execute(sql: "VACUUM")
        }
    }

    private static func version(_ db: Database) throws -> Int {
        try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
    }

    /// Copies the store to a file such as `fanfare.sqlite.v1.backup`. If that file exists, the name gets a number.
    private static func backUp(_ pool: DatabasePool, path: String, version: Int) throws {
        var number = 1
        while true {
            let name = "\(path).v\(version).backup" + (number == 1 ? "" : "-\(number)")
            do {
                let summary = try StoreCopy(source: pool, path: name, sourcePath: path).make(overwriting: false)
                // A process of an earlier version, which takes no lock, has already backed up and migrated the store.
                if summary.version != version { unlink(name) }
                return
            } catch StoreError.backupExists {
                number += 1
            }
        }
    }

    static func namespace(_ db: Database) throws -> (high: UInt64, low: UInt64) {
        let bytes = try Data.fetchOne(db, sql: "SELECT value FROM meta WHERE key = 'namespace'") ?? Data()
        guard bytes.count == 16 else { throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "no name space") }
        let halves = [bytes.prefix(8), bytes.suffix(8)].map { $0.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
        return (halves[0], halves[1])
    }

    private static func makeNamespace(_ db: Database) throws {
        let bytes = withUnsafeBytes(of: UUID().uuid) { Data($0) }
        try db.execute(
            sql: "INSERT INTO meta (key, value) VALUES ('namespace', :bytes)", arguments: ["bytes": bytes])
        try db.execute(sql: "PRAGMA application_id = \(StoreFile.applicationID)")
    }
}

/// Indexes for the runs of one campaign, newest first, so that a store with many runs responds as fast as a new one.
/// Frozen, like ``SchemaVersion1``.
enum SchemaVersion2 {
    static let sql = """
        -- The latest run of a campaign, and the latest in one state; test runs are left out of the second.
        CREATE INDEX run_campaign ON run (campaign, id);
        CREATE INDEX run_campaign_state ON run (campaign, state, id) WHERE is_test = 0;

        """
}
