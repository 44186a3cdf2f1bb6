/// Data for the hardening against attacks. Frozen, like ``SchemaVersion1``.
enum SchemaVersion6 {
    static let sql = """
        -- The first of several automatic pauses without a response from APNs in between, see Run.haltedAt.
        ALTER TABLE run ADD COLUMN halted_at INTEGER;
        -- Devices that APNs found gone in a run that has not ended: what becomes of them is decided at its end. `since` is
        -- when APNs says that the token died, and `generation` which token it was.
        CREATE TABLE found_gone (
            run_id INTEGER NOT NULL,
            device_id INTEGER NOT NULL,
            generation INTEGER NOT NULL,
            since INTEGER NOT NULL,
            reason TEXT,
            PRIMARY KEY (run_id, device_id)
        ) STRICT, WITHOUT ROWID;

        -- The members of a static segment after its last import, see SegmentContents: NULL before the first one.
        ALTER TABLE segment ADD COLUMN members_digest TEXT;
        -- What the segments of a signed audience held when the run was made, as JSON, see SegmentContents.
        ALTER TABLE run ADD COLUMN signed_segments TEXT;
        -- Sessions of sign-in links belong to a token from now on, which can be revoked.
        DELETE FROM web_session WHERE token_id IS NULL;
        -- The uid of the signer's account, NULL for an account that is not the operating system's.
        ALTER TABLE approval_signature ADD COLUMN uid INTEGER;
        -- The name of a plan that waits carries its digest.
        UPDATE approval SET plan = 'p2' || substr(plan, 3, 27) || '-' || substr(digest, 1, 16) || substr(plan, 30)
        WHERE state = 'open' AND substr(plan, 1, 3) = 'p1-';
        -- Texts of files that wait for an account that may start runs, one of each file.
        CREATE TABLE pending_change (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            text TEXT NOT NULL,
            hash TEXT NOT NULL,
            -- NULL: there was no such file.
            base TEXT,
            author TEXT NOT NULL,
            uid INTEGER,
            account TEXT,
            origin TEXT NOT NULL,
            asked_at INTEGER NOT NULL,
            UNIQUE (kind, name)
        ) STRICT;

        """
}
