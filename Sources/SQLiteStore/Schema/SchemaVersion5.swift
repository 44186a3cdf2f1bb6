/// Stages of a run. Frozen, as ``SchemaVersion1`` is.
enum SchemaVersion5 {
    static let sql = """
        -- Index into the campaign's stages; NULL for the last one, and in a run without stages. While its stage has not
        -- begun, `not_before` is no time, see NotBefore.
        ALTER TABLE delivery ADD COLUMN stage INTEGER;
        CREATE INDEX delivery_stage ON delivery (run_id, stage) WHERE stage IS NOT NULL;

        -- How far each stage of a run has come. `size` counts the deliveries that were to be sent when it was frozen; the
        -- answers are counted in the transaction that records them. `decision` is JSON, see StageDecision; `gone_tolerated` counts parts of a
        -- million.
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

        """
}
