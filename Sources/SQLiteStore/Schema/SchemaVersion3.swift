/// What a crash may cost: leases are fenced by a count of their own, so that an attempt is a request and nothing else.
/// And when a device was last heard of. Frozen, as ``SchemaVersion1`` is.
enum SchemaVersion3 {
    static let sql = deliveries + devices

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

        """
}
