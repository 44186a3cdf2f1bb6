import Foundation
import Model
import Store
import RelationalStore

/// The numbered migrations. The table `fanfare_migration` records the applied migrations. A released migration is
/// never edited.
enum Schema {
    static let migrations: [String] = [
        SchemaVersion1.sql, SchemaVersion2.sql, SchemaVersion3.sql, SchemaVersion4.sql,
        ProvenFirstSchema.sql(.postgres), SavedPlanSchema.sql(.postgres),
        ApprovalNoteSchema.sql(.postgres), InvitationSchema.sql(.postgres) + OccurrenceValueSchema.sql(.postgres),
        FeedbackSchema.sql(.postgres), InstallationSecretSchema.sql(.postgres) + FeedbackViewSchema.sql(.postgres),
        WaitingFeedbackSchema.sql(.postgres), LeaseStorageSchema.sql,
        RestoredRunSchema.sql(.postgres), FeedbackRemovalSchema.sql(.postgres),
    ]

    static var version: Int { migrations.count }

    /// The table that distinguishes a store from another program's database.
    static let mark = "fanfare_migration"

    /// The number of the advisory lock of this program, "FNFR".
    private static let lock = 0x464E_4652

    /// Applies missing migrations, each completely or not at all. Several processes may start together. The lock ends
    /// with its transaction, so it also holds behind a pooler.
    static func migrate(
        _ db: PostgresSession, limit: Duration = .seconds(3600), silentAfter: Duration = .seconds(10),
        _ migrations: [String] = migrations
    ) throws {
        for (index, sql) in migrations.enumerated() {
            try db.transaction(.durable.within(limit)) {
                try db.execute("SELECT pg_advisory_xact_lock($1)", lock)
                let facts = try StoreFacts(db)
                guard facts.version ?? 0 <= index else { return }
                if index > 0, let sender = try livingSender(db, silentAfter) {
                    throw StoreError.migrating(db.server, under: sender)
                }
                if index == 0 {
                    // Another process may have created tables since the first check.
                    guard facts.tables.isEmpty else {
                        throw StoreOpeningFault.otherProgram(server: db.server, tables: facts.tables)
                    }
                    try db.run("CREATE TABLE \(mark) (version bigint PRIMARY KEY, applied_at bigint NOT NULL)")
                }
                try db.run(sql)
                if index == 0 { try makeNamespace(db) }
                try db.execute(
                    """
                    INSERT INTO fanfare_migration (version, applied_at)
                    VALUES ($1, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
                    """, index + 1)
            }
        }
    }

    /// Returns a sender that is not fenced and whose heartbeat is younger than `silentAfter`. A heartbeat in the future
    /// has the same bound, as in ``SenderRow/isSilent``.
    private static func livingSender(_ db: PostgresSession, _ silentAfter: Duration) throws -> String? {
        try db.first(
            """
            SELECT name FROM sender
            WHERE lost_at IS NULL
                AND heartbeat_at BETWEEN \(StoreTime.now) - $1::bigint AND \(StoreTime.now) + $1::bigint
            ORDER BY heartbeat_at DESC LIMIT 1
            """, silentAfter.wholeMilliseconds
        ) { try $0.text(0) }
    }

    /// Throws if a newer program has migrated the store since this one opened it. Each lease calls it, which costs a
    /// round trip to the server.
    static func requireKnown(_ db: PostgresSession) throws { try requireKnown(db.rows(migrated), db.server) }

    /// Reads the version that ``requireKnown(_:_:)`` checks.
    static let migrated: SQLStatement = "SELECT max(version) FROM fanfare_migration"

    static func requireKnown(_ rows: PostgresRows, _ server: String) throws {
        guard let found = try rows.first?.intOrNil(0), found > version else { return }
        throw StoreError.newerVersion(path: server, found: found, known: version)
    }

    static func namespace(_ db: PostgresSession) throws -> (high: UInt64, low: UInt64) {
        let bytes = try db.first("SELECT value FROM meta WHERE key = 'namespace'") { try $0.bytes(0) } ?? []
        guard bytes.count == 16 else { throw StoreOpeningFault.noNamespace(server: db.server) }
        let halves = [bytes.prefix(8), bytes.suffix(8)].map { $0.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
        return (halves[0], halves[1])
    }

    private static func makeNamespace(_ db: PostgresSession) throws {
        let bytes = withUnsafeBytes(of: UUID().uuid) { Array($0) }
        try db.execute("INSERT INTO meta (key, value) VALUES ('namespace', $1)", bytes)
    }
}
