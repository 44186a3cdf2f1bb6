/// What a crash may cost: leases are fenced by a count of their own, so that an attempt is a request and nothing else.
/// And when a device was last heard of, when the wall clock was set, and
/// what a sender waits for. Frozen, as ``SchemaVersion1`` is.
enum SchemaVersion3 {
    static let sql = deliveries + devices + clocks + holds

    private static let deliveries = """
        -- How many leases of a delivery have ended: an outcome counts for the lease that follows, and for no other. Up to
        -- this version `attempt` was counted so.
        ALTER TABLE delivery ADD COLUMN leases INTEGER NOT NULL DEFAULT 0;
        UPDATE delivery SET leases = attempt
        WHERE run_id IN (SELECT id FROM run WHERE state IN ('scheduled', 'running', 'paused'));

        """

    private static let devices = """
        -- When an import last named the device's token without `registered_at`. Apart from the device: a list imported
        -- again, with nothing new in it, would otherwise rewrite every page of them.
        CREATE TABLE token_heard (
            device_id INTEGER PRIMARY KEY REFERENCES device (id) ON DELETE CASCADE,
            heard_at INTEGER NOT NULL
        ) STRICT;

        """

    private static let clocks = """
        -- What the clocks of each start of the machine showed together, as of the last look; `uptime` in milliseconds.
        CREATE TABLE clock_reading (
            boot TEXT NOT NULL PRIMARY KEY,
            wall_at INTEGER NOT NULL,
            uptime INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        -- The wall clock was set: what it would have shown when that was noticed, and what it did.
        CREATE TABLE clock_step (
            id INTEGER PRIMARY KEY,
            expected_at INTEGER NOT NULL,
            shown_at INTEGER NOT NULL,
            is_told INTEGER NOT NULL DEFAULT 0
        ) STRICT;

        """

    private static let holds = """
        -- Endpoints that the sender of a run leaves alone for a while; `status` is that of the last answer.
        CREATE TABLE endpoint_hold (
            run_id INTEGER NOT NULL REFERENCES run (id),
            environment INTEGER NOT NULL,
            endpoint TEXT NOT NULL,
            status INTEGER,
            since INTEGER NOT NULL,
            next_try_at INTEGER NOT NULL,
            PRIMARY KEY (run_id, environment)
        ) STRICT, WITHOUT ROWID;

        """
}
