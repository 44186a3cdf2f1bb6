import Model
import Store
import RelationalStore

/// Distinguishes living senders from dead ones by the rules of ``SenderRow``, in the transaction of `db`. It changes
/// nothing.
struct LivingSenders {
    private let told: OwnerLiveness.IsAlive
    private let isShared: Bool
    private let isQuiet: Bool
    private let known: [String: Signs]

    /// The state of a sender by its row.
    private struct Signs {
        let isSilent: Bool
        let mayStart: Bool
        let isTooSlow: Bool
    }

    init(_ db: PostgresSession, _ store: PostgresDatabase) throws {
        told = store.isAlive
        isShared = store.takeoverAfter != nil
        guard isShared else {
            (isQuiet, known) = (false, [:])
            return
        }
        let rows = try db.rows(
            """
            SELECT quiet.lasts, name, \(SenderRow.isSilent), \(SenderRow.mayStart),
                coalesce(facts::jsonb @> '{"isTooSlow": true}', false)
            FROM (SELECT \(SenderRow.isQuiet) AS lasts) AS quiet LEFT JOIN sender ON true
            """, store.silenceMilliseconds, SenderRow.trustMilliseconds)
        isQuiet = try rows.first?.bool(0) ?? false
        var known: [String: Signs] = [:]
        for row in rows {
            guard let name = try row.textOrNil(1) else { continue }
            known[name] = Signs(
                isSilent: try row.bool(2), mayStart: try row.bool(3), isTooSlow: try row.bool(4))
        }
        self.known = known
    }

    func callAsFunction(_ owner: String) -> Bool {
        guard isShared else { return told(owner) }
        guard let signs = known[owner] else { return isQuiet && told(owner) }
        return !signs.isSilent && (signs.mayStart || told(owner))
    }

    /// Returns whether the sender sends heartbeats fast enough to send requests.
    func isFit(_ owner: String) -> Bool { known[owner].map { $0.mayStart && !$0.isTooSlow } ?? false }

    /// The senders of this machine that have exited according to its locks, but sent a heartbeat within their trust
    /// window.
    var endedLately: [String] { known.filter { $1.mayStart && !told($0) }.keys.sorted() }
}

extension PostgresDatabase {
    /// The takeover timeout. Practically unlimited if a missing heartbeat never makes a sender dead.
    var silenceMilliseconds: Int64 { takeoverAfter?.wholeMilliseconds ?? Int64.max / 4 }
}

/// The row of a sender: its heartbeat, and the takeover that fences it. It is locked before any row of a run.
///
/// A sender is dead when one of these holds:
///
/// - its last heartbeat is older than the takeover timeout, and no quiet time lasts
/// - its own machine says that its process has ended, and its trust window is over. A younger heartbeat proves that
///   the process runs on another machine, with a copy of the state folder
/// - it has no row, and no quiet time lasts or its own machine says that its process has ended
///
/// `lost_at` fences a sender, but does not make the sender dead for other machines. The sender's own machine may be
/// recovering its runs with its journal. A machine that fences a sender early renews the sender's heartbeat with
/// each run that it takes over. The renewals end when the takeover timeout has passed since the fence. Other
/// machines check only the heartbeat. So they wait as long as the recovery makes progress, and for two timeouts at
/// most.
struct SenderRow {
    /// Whether a quiet time lasts. The server was unavailable, so a missing heartbeat proves nothing about a sender.
    static let isQuiet = """
        EXISTS (SELECT 1 FROM sender_quiet WHERE until BETWEEN \(StoreTime.now) AND \(StoreTime.now) + $1::bigint)
        """
    /// Whether a row of `sender` has no heartbeat within `$1` milliseconds, while no quiet time lasts. A heartbeat
    /// in the future was written before the server's clock was set back, or by another server.
    static let isSilent = """
        (heartbeat_at NOT BETWEEN \(StoreTime.now) - $1::bigint AND \(StoreTime.now) + $1::bigint AND NOT \(isQuiet))
        """
    /// Whether the sender may start requests: it is not fenced, and its trust window of `$2` milliseconds may be open.
    static let mayStart = """
        (lost_at IS NULL AND heartbeat_at BETWEEN \(StoreTime.now) - $2::bigint AND \(StoreTime.now) + $2::bigint)
        """
    /// Whether a run, a lease or the daemon's row names the sender. Its row is then needed to decide whether the
    /// sender is alive.
    static let leftWork = """
        (EXISTS (SELECT 1 FROM run WHERE run.owner = sender.name)
            OR EXISTS (SELECT 1 FROM run_sender WHERE run_sender.owner = sender.name)
            OR EXISTS (SELECT 1 FROM lease WHERE lease.owner = sender.name)
            OR EXISTS (SELECT 1 FROM daemon WHERE daemon.owner = sender.name))
        """
    static let trustMilliseconds = SenderTrust.window.wholeMilliseconds
    /// The time without any heartbeat after which the server counts as having been unavailable.
    private static let awayMs: Int64 = 5_000

    private let db: PostgresSession
    private let store: PostgresDatabase

    init(_ db: PostgresSession, _ store: PostgresDatabase) {
        self.db = db
        self.store = store
    }

    /// Records a heartbeat, and the sender itself if it is new. Throws if a newer program has migrated the store. In
    /// a store of one machine, it only checks the version.
    func beat(_ name: String) throws {
        guard store.takeoverAfter != nil else { return try Schema.requireKnown(db) }
        let asked = ServerClock.uptime()
        let answers = try db.pipeline { batch in
            batch.add(Schema.migrated)
            try beat(name, nil, in: &batch)
        }
        try Schema.requireKnown(answers[0], db.server)
        try heard(answers[1], of: name, askedAt: asked)
    }

    /// Adds the same heartbeat to a batch; ``heard(_:of:askedAt:)`` reads the result.
    func beat(_ name: String, _ facts: SenderFacts?, in batch: inout PostgresBatch) throws {
        batch.add(
            Self.beating, store.silenceMilliseconds, Self.awayMs, name, try StoredJSON.text(facts ?? SenderFacts()),
            facts != nil)
    }

    /// Throws ``StoreError/senderLost(_:)`` if the sender is fenced.
    func heard(_ rows: PostgresRows, of name: String, askedAt asked: Duration) throws {
        guard let shown = try rows.first?.timestamp(0) else { throw StoreError.senderLost(name) }
        store.clock.note(shown, between: asked, and: ServerClock.uptime())
    }

    /// Deletes senders that left no work and whose last heartbeat is more than `$1` milliseconds ago.
    static let forgetting: SQLStatement = """
        DELETE FROM sender WHERE heartbeat_at < \(StoreTime.now) - $1::bigint AND NOT \(leftWork)
        """

    private static let beating: SQLStatement = """
        WITH quiet AS (\(quietBegins))
        INSERT INTO sender (name, since, heartbeat_at, facts)
        VALUES ($3, \(StoreTime.now), \(StoreTime.now), $4)
        ON CONFLICT (name) DO UPDATE SET
            heartbeat_at = excluded.heartbeat_at,
            facts = CASE WHEN $5 THEN excluded.facts ELSE sender.facts END
        WHERE sender.lost_at IS NULL
        RETURNING \(StoreTime.now)
        """

    /// Throws ``StoreError/senderLost(_:)`` if the sender is fenced. A heartbeat never waits for the caller's
    /// transaction.
    func requireNotLost(_ name: String) throws {
        guard store.takeoverAfter != nil else { return }
        let isLost = try db.first("SELECT 1 FROM sender WHERE name = $1 AND lost_at IS NOT NULL", name) { _ in true }
        if isLost == true { throw StoreError.senderLost(name) }
    }

    /// Begins a quiet time if the server was unavailable, that is if no sender has sent a heartbeat recently, or
    /// none since the server started. All senders then get the takeover timeout to send one. Each such gap begins
    /// only one quiet time, because the next quiet time needs a newer heartbeat first.
    ///
    /// Every transaction that looks for dead senders calls this first, because it may be the first one after an
    /// outage.
    private func beginQuietTime() throws {
        try db.execute("\(Self.quietBegins)", store.silenceMilliseconds, Self.awayMs)
    }

    private static let quietBegins = """
        INSERT INTO sender_quiet (id, until, heard_at)
        SELECT 1, \(StoreTime.now) + $1::bigint, newest.heard_at
        FROM (SELECT max(heartbeat_at) AS heard_at FROM sender) AS newest
        WHERE EXISTS (SELECT 1 FROM sender WHERE lost_at IS NULL)
            AND (newest.heard_at < \(StoreTime.serverStart) OR NOT EXISTS (
                SELECT 1 FROM sender WHERE lost_at IS NULL
                    AND heartbeat_at BETWEEN \(StoreTime.now) - $2::bigint AND \(StoreTime.now) + $2::bigint
            ))
            AND NOT EXISTS (SELECT 1 FROM sender_quiet WHERE sender_quiet.heard_at = newest.heard_at)
        ON CONFLICT (id) DO UPDATE SET until = excluded.until, heard_at = excluded.heard_at
        """

    /// Returns the remaining quiet time, or `nil` if it delays no takeover. It delays one if a sender with no recent
    /// heartbeat has left work.
    func quietTimeLeft() throws -> Duration? {
        try beginQuietTime()
        return try db.first(
            """
            SELECT (SELECT until FROM sender_quiet) - \(StoreTime.now) FROM sender
            WHERE \(Self.isQuiet) AND \(Self.leftWork)
                AND heartbeat_at NOT BETWEEN \(StoreTime.now) - $1::bigint AND \(StoreTime.now) + $1::bigint
            LIMIT 1
            """, store.silenceMilliseconds
        ) { .milliseconds(try $0.int64(0)) }
    }

    /// The server-side name of a sender's writing transactions. A takeover ends them by this name.
    static func activity(of name: String) -> String { "fanfare \(FNV1a.hash(name))" }

    /// Fences the named senders that are dead, and returns them.
    ///
    /// Ends their transactions first. Otherwise a transaction whose sender stopped would keep its locks, and the
    /// takeover would wait.
    func takeOver(_ names: Set<String>) throws -> Set<String> {
        let told = names.filter { !store.isAlive($0) }
        guard store.takeoverAfter != nil else { return told }
        guard !names.isEmpty else { return [] }
        try beginQuietTime()
        let dead = try db.all(
            """
            SELECT asked.name, sender.name IS NOT NULL FROM unnest($3::text[]) AS asked (name)
            LEFT JOIN sender ON sender.name = asked.name
            WHERE CASE
                WHEN sender.name IS NULL THEN asked.name = ANY ($4::text[]) OR NOT \(Self.isQuiet)
                ELSE \(Self.isSilent) OR asked.name = ANY ($4::text[]) AND NOT \(Self.mayStart)
            END
            """, store.silenceMilliseconds, Self.trustMilliseconds, names.sorted(), told.sorted()
        ) { (name: try $0.text(0), isKnown: try $0.bool(1)) }
        guard !dead.isEmpty else { return [] }
        try endTransactions(of: dead.map(\.name))
        // A sender that has sent a heartbeat in the meantime is alive.
        let fenced = try db.all(
            """
            UPDATE sender SET
                lost_at = coalesce(lost_at, \(StoreTime.now)),
                heartbeat_at = CASE
                    WHEN NOT \(Self.isSilent) AND (lost_at IS NULL OR lost_at > \(StoreTime.now) - $1::bigint)
                    THEN \(StoreTime.now) ELSE heartbeat_at
                END
            WHERE name = ANY ($3) AND (\(Self.isSilent) OR name = ANY ($4::text[]) AND NOT \(Self.mayStart))
            RETURNING name
            """, store.silenceMilliseconds, Self.trustMilliseconds, dead.filter(\.isKnown).map(\.name), told.sorted()
        ) { try $0.text(0) }
        // The new row fences a process that would still start under this name.
        let unknown = try db.all(
            """
            INSERT INTO sender (name, since, heartbeat_at, lost_at, facts)
            SELECT name, \(StoreTime.now), 0, \(StoreTime.now), $2 FROM unnest($1::text[]) AS given (name)
            ON CONFLICT DO NOTHING RETURNING name
            """, dead.filter { !$0.isKnown }.map(\.name), try StoredJSON.text(SenderFacts())
        ) { try $0.text(0) }
        return Set(fenced + unknown)
    }

    private func endTransactions(of names: [String]) throws {
        try db.execute(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE application_name = ANY ($1) AND pid <> pg_backend_pid()
                AND datname = current_database() AND usename = current_user
            """, names.map(Self.activity).sorted())
    }
}
