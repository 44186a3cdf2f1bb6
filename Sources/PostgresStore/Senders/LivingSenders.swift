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
                """
                SELECT name FROM sender
                WHERE lost_at IS NOT NULL OR heartbeat_at < \(ServerClock.sql) - $1::bigint
                """, store.silenceMilliseconds
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
    private let db: PostgresSession
    private let store: PostgresDatabase

    init(_ db: PostgresSession, _ store: PostgresDatabase) {
        self.db = db
        self.store = store
    }

    /// Makes it known, or says that it is still there; nothing where nobody asks.
    func beat(_ name: String, _ facts: SenderFacts? = nil) throws {
        guard store.takeoverAfter != nil else { return }
        let text = try StoredJSON.text(facts ?? SenderFacts())
        let asked = ServerClock.uptime()
        let shown = try db.first(
            """
            INSERT INTO sender (name, since, heartbeat_at, facts)
            VALUES ($1, \(ServerClock.sql), \(ServerClock.sql), $2)
            ON CONFLICT (name) DO UPDATE SET
                heartbeat_at = greatest(sender.heartbeat_at, excluded.heartbeat_at),
                facts = CASE WHEN $3 THEN excluded.facts ELSE sender.facts END
            WHERE sender.lost_at IS NULL
            RETURNING \(ServerClock.sql)
            """, name, text, facts != nil
        ) { try $0.timestamp(0) }
        guard let shown else { throw StoreError.senderLost(name) }
        store.clock.note(shown, between: asked, and: ServerClock.uptime())
    }

    /// Of those named, whoever is gone is so for good from now on.
    func takeOver(_ names: Set<String>) throws -> Set<String> {
        let told = names.filter { !store.isAlive($0) }
        let silent = try db.all(
            """
            UPDATE sender SET lost_at = coalesce(lost_at, \(ServerClock.sql))
            WHERE name = ANY ($1)
                AND (lost_at IS NOT NULL OR heartbeat_at < \(ServerClock.sql) - $2::bigint OR name = ANY ($3))
            RETURNING name
            """, names.sorted(), store.silenceMilliseconds, told.sorted()
        ) { try $0.text(0) }
        return told.union(silent)
    }
}
