/// Stages of a run, frequency caps, and approval of plans. Frozen, like ``SchemaVersion1``.
enum SchemaVersion5 {
    static let sql = """
        -- Index into the campaign's stages; NULL for the last one, and in a run without stages. While its stage has not
        -- begun, `not_before` is no time, see NotBefore.
        ALTER TABLE delivery ADD COLUMN stage INTEGER;
        CREATE INDEX delivery_stage ON delivery (run_id, stage) WHERE stage IS NOT NULL;

        -- How far each stage of a run has come. `size` counts the deliveries that were to be sent when it was frozen; the
        -- answers are counted in the transaction that records them. `decision`, and `after_go` for what was let go and then
        -- halted, are JSON, see StageDecision; `gone_tolerated` counts parts of a million.
        CREATE TABLE run_stage (
            run_id INTEGER NOT NULL,
            stage INTEGER NOT NULL,
            size INTEGER NOT NULL DEFAULT 0,
            opened_at INTEGER,
            answered INTEGER NOT NULL DEFAULT 0,
            failed INTEGER NOT NULL DEFAULT 0,
            gone INTEGER NOT NULL DEFAULT 0,
            unknown INTEGER NOT NULL DEFAULT 0,
            gone_tolerated INTEGER,
            decision TEXT,
            after_go TEXT,
            approved_by TEXT,
            released_by TEXT,
            PRIMARY KEY (run_id, stage)
        ) STRICT, WITHOUT ROWID;

        -- The same answers by environment and text; `locale_index` is -1 before one was chosen.
        CREATE TABLE run_stage_group (
            run_id INTEGER NOT NULL,
            stage INTEGER NOT NULL,
            environment INTEGER NOT NULL,
            locale_index INTEGER NOT NULL,
            answered INTEGER NOT NULL,
            failed INTEGER NOT NULL,
            gone INTEGER NOT NULL,
            unknown INTEGER NOT NULL,
            PRIMARY KEY (run_id, stage, environment, locale_index)
        ) STRICT, WITHOUT ROWID;

        -- Visible pushes under a frequency cap that left, or may have: those of 64 neighbouring devices (kind 0), or of a
        -- person (kind 1), a row, packed as CapPage says. `latest` is the last moment in it, the greatest integer while one
        -- is in flight.
        CREATE TABLE cap_ledger (
            kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 1),
            id INTEGER NOT NULL,
            latest INTEGER NOT NULL,
            pushes BLOB NOT NULL,
            PRIMARY KEY (kind, id)
        ) STRICT, WITHOUT ROWID;

        -- By which they were decided: the campaign's class, and the app's caps as a JSON list, see CapRule.
        CREATE TABLE cap_rule (
            code INTEGER PRIMARY KEY,
            topic TEXT NOT NULL,
            class TEXT NOT NULL,
            caps TEXT NOT NULL
        ) STRICT;

        -- As many devices as it was counted with when it was made, and as it may turn out to be for, see ReachLimits.
        ALTER TABLE run ADD COLUMN reach INTEGER;
        ALTER TABLE run ADD COLUMN reach_most INTEGER;
        ALTER TABLE run ADD COLUMN reach_bound INTEGER;

        -- Whether it holds slots of frequency caps.
        ALTER TABLE lease ADD COLUMN is_capped INTEGER NOT NULL DEFAULT 0;

        -- From when on all that is sent of it is leased under frequency caps, so that its pushes are in the ledger; 0 is from
        -- its start. NULL where there is no such moment, or where the ledger has forgotten.
        ALTER TABLE run ADD COLUMN capped_since INTEGER;

        -- Plans that wait for signatures, or did. `occurrence` is empty for a run that somebody starts; `digest` is the SHA-256
        -- of what is signed; `authors` is a JSON list of accounts; `evidence` is JSON, see ApprovalEvidence, of the run that
        -- was made with it.
        CREATE TABLE approval (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            campaign TEXT NOT NULL,
            occurrence TEXT NOT NULL,
            plan TEXT NOT NULL,
            digest TEXT NOT NULL,
            reach INTEGER NOT NULL,
            needs INTEGER NOT NULL,
            authors TEXT NOT NULL,
            asked_by TEXT NOT NULL,
            asked_at INTEGER NOT NULL,
            state TEXT NOT NULL,
            run_id INTEGER,
            definition TEXT NOT NULL,
            evidence TEXT
        ) STRICT;
        CREATE INDEX approval_digest ON approval (campaign, occurrence, digest);
        CREATE INDEX approval_state ON approval (state);

        -- One of each account. What the store saw later than `event_id` tells whether the clock was set back.
        CREATE TABLE approval_signature (
            approval_id INTEGER NOT NULL,
            identity TEXT NOT NULL,
            name TEXT NOT NULL,
            signed_at INTEGER NOT NULL,
            event_id INTEGER NOT NULL,
            reach INTEGER NOT NULL,
            is_rejection INTEGER NOT NULL,
            reason TEXT,
            PRIMARY KEY (approval_id, identity)
        ) STRICT, WITHOUT ROWID;

        """
}
