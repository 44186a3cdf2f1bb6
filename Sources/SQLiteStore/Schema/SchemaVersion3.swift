/// Crash recovery: leases are fenced by a separate count, so that an attempt is always one request. This version also
/// records when a device was last heard of, clock steps, what a sender waits for, and shared paces. Frozen, like
/// ``SchemaVersion1``.
enum SchemaVersion3 {
    static let sql = deliveries + devices + lateness + providerTokens + clocks + holds + paces + proofs

    private static let deliveries = """
        -- How many leases of a delivery have ended: an outcome counts for the lease that follows, and for no other. Up to
        -- this version `attempt` was counted so.
        ALTER TABLE delivery ADD COLUMN leases INTEGER NOT NULL DEFAULT 0;
        -- Requests among `attempt` that APNs refused for a fault that is not the push's: they use up no attempt.
        ALTER TABLE delivery ADD COLUMN excused INTEGER NOT NULL DEFAULT 0;
        UPDATE delivery SET leases = attempt
        WHERE run_id IN (
            SELECT id FROM run WHERE state IN ('scheduled', 'running', 'paused') UNION SELECT run_id FROM silent_ledger
        );
        ALTER TABLE silent_ledger RENAME COLUMN attempt TO lease_number;

        """

    private static let devices = """
        -- When an import last named the device's token without `registered_at`. Apart from the device: a list imported
        -- again, with nothing new in it, would otherwise rewrite every page of them.
        CREATE TABLE token_heard (
            device_id INTEGER PRIMARY KEY REFERENCES device (id) ON DELETE CASCADE,
            heard_at INTEGER NOT NULL
        ) STRICT;

        -- Indexes that a first load of devices does without, see FirstLoad: to be made by whoever comes next.
        CREATE TABLE put_off_index (
            name TEXT NOT NULL PRIMARY KEY,
            sql TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;

        """

    private static let lateness = """
        -- From now on `heartbeat_at` is when an owner was last heard of, also after it gave the run up: `owner` alone says
        -- whether somebody has it. Up to this version it was erased, so it is taken from what was last recorded.
        UPDATE run SET heartbeat_at = max(
            created_at,
            coalesce((SELECT max(at) FROM event WHERE run_id = run.id), 0),
            coalesce((SELECT max(changed_at) FROM delivery WHERE run_id = run.id), 0)
        )
        WHERE state IN ('scheduled', 'running', 'paused') AND owner IS NULL AND started_at IS NOT NULL;

        -- 1 for a failed run that was refused before anything was sent. Those were made ended, at one moment.
        ALTER TABLE run ADD COLUMN is_refused INTEGER NOT NULL DEFAULT 0;
        UPDATE run SET is_refused = 1 WHERE state = 'failed' AND started_at IS NULL AND finished_at = created_at;

        -- The few that paused themselves, for whoever asks what waits for a person.
        CREATE INDEX run_halted ON run (id) WHERE state = 'paused' AND paused_by IS NULL;

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

    private static let paces = """
        -- What is left of the paces that all senders share: for each start of a machine, its times in microseconds since
        -- then; `wall_at` is when a push was last taken.
        CREATE TABLE pace_bucket (
            name TEXT NOT NULL,
            boot TEXT NOT NULL,
            tokens REAL NOT NULL,
            started_at INTEGER NOT NULL,
            filled_at INTEGER NOT NULL,
            wall_at INTEGER NOT NULL,
            PRIMARY KEY (name, boot)
        ) STRICT, WITHOUT ROWID;

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

    private static let proofs = """
        -- See EventChain. Events of before are tied together when a store is brought up to this version.
        ALTER TABLE event ADD COLUMN hash BLOB;
        CREATE TABLE event_chain (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            events INTEGER NOT NULL,
            hash BLOB NOT NULL
        ) STRICT;
        INSERT INTO event_chain (id, events, hash) VALUES (1, 0, x'');

        -- Of a run that has nothing left to do: a sum over what became of each delivery, see DeliveryTally. NULL for those
        -- that were over before this version.
        ALTER TABLE run ADD COLUMN outcomes_digest INTEGER;

        """
}
