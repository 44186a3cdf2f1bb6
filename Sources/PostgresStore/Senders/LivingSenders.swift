import Model
import Store

/// Who may be alive, in the transaction of `db`: those of whom neither this machine nor the store says that they are gone.
struct LivingSenders {
    private let told: OwnerLiveness.IsAlive
    /// Not heard of for too long, or lost already.
    private let silent: Set<String>

    init(_ db: PostgresSession, _ store: PostgresDatabase) throws {
        told = store.isAlive
        silent = Set(
            try db.all(
                "SELECT name FROM sender WHERE lost_at IS NOT NULL OR \(SenderRow.isSilent)", store.silenceMilliseconds
            ) { try $0.text(0) })
    }

    func callAsFunction(_ owner: String) -> Bool { told(owner) && !silent.contains(owner) }
}

extension PostgresDatabase {
    /// For ever, where nobody is taken for gone by its silence.
    var silenceMilliseconds: Int64 { takeoverAfter?.wholeMilliseconds ?? Int64.max / 4 }
}

/// A sender's row: that it lives, until the transaction that takes its work over says that it does not.
///
/// Locked before anything of a run.
struct SenderRow {
    /// That a row of `sender` was not heard of for `$1` milliseconds. One that seems to have been heard of in the future was
    /// so before the server's clock was set back, or on a server before this one. Nobody is silent while a quiet time
    /// lasts, see ``beat(_:_:)``.
    static let isSilent = """
        (heartbeat_at NOT BETWEEN \(StoreTime.now) - $1::bigint AND \(StoreTime.now) + $1::bigint
            AND NOT EXISTS (
                SELECT 1 FROM sender_quiet
                WHERE until BETWEEN \(StoreTime.now) AND \(StoreTime.now) + $1::bigint
            ))
        """
    /// Whoever is alive was heard of within it, unless the server was away.
    private static let awayMs: Int64 = 5_000

    private let db: PostgresSession
    private let store: PostgresDatabase

    init(_ db: PostgresSession, _ store: PostgresDatabase) {
        self.db = db
        self.store = store
    }

    /// Makes it known, or says that it is still there; nothing where nobody asks.
    func beat(_ name: String, _ facts: SenderFacts? = nil) throws {
        guard store.takeoverAfter != nil else { return }
        try beginQuietTime()
        let text = try StoredJSON.text(facts ?? SenderFacts())
        let asked = ServerClock.uptime()
        let shown = try db.first(
            """
            INSERT INTO sender (name, since, heartbeat_at, facts)
            VALUES ($1, \(StoreTime.now), \(StoreTime.now), $2)
            ON CONFLICT (name) DO UPDATE SET
                heartbeat_at = excluded.heartbeat_at,
                facts = CASE WHEN $3 THEN excluded.facts ELSE sender.facts END
            WHERE sender.lost_at IS NULL
            RETURNING \(StoreTime.now)
            """, name, text, facts != nil
        ) { try $0.timestamp(0) }
        guard let shown else { throw StoreError.senderLost(name) }
        store.clock.note(shown, between: asked, and: ServerClock.uptime())
    }

    /// Where nobody at all was heard of lately it was the server that was away: until all had time to come back, nobody's
    /// silence counts.
    private func beginQuietTime() throws {
        try db.execute(
            """
            INSERT INTO sender_quiet (id, until)
            SELECT 1, \(StoreTime.now) + $1::bigint
            WHERE EXISTS (SELECT 1 FROM sender WHERE lost_at IS NULL)
                AND NOT EXISTS (
                    SELECT 1 FROM sender
                    WHERE lost_at IS NULL AND heartbeat_at BETWEEN \(StoreTime.now) - $2 AND \(StoreTime.now) + $2
                )
            ON CONFLICT (id) DO UPDATE SET until = excluded.until
            """, store.silenceMilliseconds, Self.awayMs)
    }

    /// What a sender's transaction that copies is called on the server: one that was cut off in the middle of it, or stopped,
    /// would keep its locks for ever.
    static func activity(of name: String) -> String { "fanfare \(FNV1a.hash(name))" }

    /// Of those named, whoever is gone is so for good from now on.
    func takeOver(_ names: Set<String>) throws -> Set<String> {
        let told = names.filter { !store.isAlive($0) }
        let silent = try db.all(
            """
            UPDATE sender SET lost_at = coalesce(lost_at, \(StoreTime.now))
            WHERE name = ANY ($2) AND (lost_at IS NOT NULL OR name = ANY ($3) OR \(Self.isSilent))
            RETURNING name
            """, store.silenceMilliseconds, names.sorted(), told.sorted()
        ) { try $0.text(0) }
        let gone = told.union(silent)
        if !gone.isEmpty {
            try db.execute(
                """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE application_name = ANY ($1) AND pid <> pg_backend_pid()
                    AND datname = current_database() AND usename = current_user
                """, gone.map(Self.activity).sorted())
        }
        return gone
    }
}
