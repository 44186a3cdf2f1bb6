/// Tables and indexes for the pages and the API: access, a run's outcomes over time, and pages of long lists. Frozen,
/// like ``SchemaVersion1``.
enum SchemaVersion4 {
    static let sql = access + timeline + listings

    private static let access = """
        -- `secret_hash` is SHA-256 in hex: the secret itself is nowhere.
        CREATE TABLE access_token (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            secret_hash TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL,
            role TEXT NOT NULL,
            topic TEXT,
            created_at INTEGER NOT NULL,
            created_by TEXT NOT NULL,
            expires_at INTEGER,
            revoked_at INTEGER,
            last_used_at INTEGER
        ) STRICT;
        CREATE UNIQUE INDEX access_token_name ON access_token (name) WHERE revoked_at IS NULL;

        -- Somebody at a web page. `token_id` is NULL for whoever came without a token; `ends_at` is when no use keeps it
        -- alive any more.
        CREATE TABLE web_session (
            secret_hash TEXT NOT NULL PRIMARY KEY,
            token_id INTEGER REFERENCES access_token (id),
            name TEXT NOT NULL,
            role TEXT NOT NULL,
            topic TEXT,
            created_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            ends_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX web_session_token ON web_session (token_id) WHERE token_id IS NOT NULL;
        CREATE INDEX web_session_expiry ON web_session (expires_at);

        """

    private static let timeline = """
        -- What became of a run, by 10 s: changed in the transaction that changes the account. `slot` is the time by 10 s since
        -- 1970. `retried` counts attempts after which the push waits for another one, `reopened` rejections that were taken
        -- back. `latencies` has five bytes for each bucket of LatencyHistogram that is not empty: its number, and its count
        -- in little endian.
        CREATE TABLE timeline (
            run_id INTEGER NOT NULL,
            slot INTEGER NOT NULL,
            accepted INTEGER NOT NULL,
            rejected INTEGER NOT NULL,
            unknown INTEGER NOT NULL,
            suppressed INTEGER NOT NULL,
            retried INTEGER NOT NULL,
            reopened INTEGER NOT NULL,
            latencies BLOB NOT NULL,
            PRIMARY KEY (run_id, slot)
        ) STRICT, WITHOUT ROWID;

        -- 1 for a run all of whose outcomes are in its timeline; 0 for one that began before there was any.
        ALTER TABLE run ADD COLUMN has_timeline INTEGER NOT NULL DEFAULT 0;
        UPDATE run SET has_timeline = 1 WHERE audience = 0;

        """

    private static let listings = """
        -- A page of the deliveries that did not arrive, by what became of them. Those to be sent, in flight and accepted are
        -- nearly all of a healthy run, and stay out of it. Written so that a planner cannot take it for a range.
        CREATE INDEX delivery_failed ON delivery (run_id, state, reason) WHERE state NOT IN (0, 1);

        -- Every column that a list of runs is filtered by: the rows themselves hold whole campaigns.
        CREATE INDEX run_listing ON run (id, state, campaign, is_test, created_at);

        CREATE INDEX event_actor ON event (actor);
        CREATE INDEX event_kind ON event (kind);

        """
}
