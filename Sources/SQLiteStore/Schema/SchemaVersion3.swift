/// What a crash may cost: leases are fenced by a count of their own, so that an attempt is a request and nothing else.
/// Frozen, as ``SchemaVersion1`` is.
enum SchemaVersion3 {
    static let sql = deliveries + providerTokens

    private static let deliveries = """
        -- How many leases of a delivery have ended: an outcome counts for the lease that follows, and for no other. Up to
        -- this version `attempt` was counted so.
        ALTER TABLE delivery ADD COLUMN leases INTEGER NOT NULL DEFAULT 0;
        UPDATE delivery SET leases = attempt
        WHERE run_id IN (SELECT id FROM run WHERE state IN ('scheduled', 'running', 'paused'));

        """

    private static let providerTokens = """
        -- One provider token for each signing key, for all processes: a second one within 20 minutes is refused. `signed_at`
        -- is the wall clock's; `signed_after` counts the milliseconds since the start of the machine named by `boot_id`,
        -- which nobody sets.
        CREATE TABLE provider_token (
            team_id TEXT NOT NULL,
            key_id TEXT NOT NULL,
            fingerprint TEXT NOT NULL,
            token TEXT NOT NULL,
            signed_at INTEGER NOT NULL,
            held_until INTEGER NOT NULL,
            boot_id TEXT NOT NULL,
            signed_after INTEGER NOT NULL,
            PRIMARY KEY (team_id, key_id, fingerprint)
        ) STRICT, WITHOUT ROWID;

        """
}
