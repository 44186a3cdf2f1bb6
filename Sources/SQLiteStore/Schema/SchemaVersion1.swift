/// The first schema. It is frozen, because stores were created with it. It calls no code and interpolates nothing.
/// Times are milliseconds UTC. Environment 0 is production, 1 sandbox. Device status 0 is active, 1 suspended, 2 gone.
/// Delivery state is `DeliveryState.rawValue`.
enum SchemaVersion1 {
    static let sql = devices + segments + runs + feeds + webhooks + deliveries + views

    private static let devices = """
        CREATE TABLE meta (
            key TEXT NOT NULL PRIMARY KEY,
            value BLOB NOT NULL
        ) STRICT, WITHOUT ROWID;

        -- Topics are named once: every device and two of its indexes would repeat them.
        CREATE TABLE topic (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE
        ) STRICT;

        -- AUTOINCREMENT: an id is never used again, since deliveries outlive their device. What freezing and leasing
        -- read stands first in the row.
        CREATE TABLE device (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            topic_id INTEGER NOT NULL REFERENCES topic (id),
            environment INTEGER NOT NULL CHECK (environment IN (0, 1)),
            status INTEGER NOT NULL DEFAULT 0 CHECK (status IN (0, 1, 2)),
            alerts_allowed INTEGER CHECK (alerts_allowed IN (0, 1)),
            token_generation INTEGER NOT NULL DEFAULT 1 CHECK (token_generation >= 1),
            token BLOB NOT NULL CHECK (length(token) BETWEEN 32 AND 100),
            locale TEXT,
            badge INTEGER NOT NULL DEFAULT 0,
            registered_at INTEGER,
            last_seen_at INTEGER,
            status_reason TEXT,
            status_at INTEGER,
            installation_id TEXT,
            user_id TEXT,
            time_zone TEXT,
            country TEXT,
            app_version TEXT,
            app_version_key TEXT,
            os_version TEXT,
            os_version_key TEXT,
            model TEXT,
            attributes TEXT
        ) STRICT;

        -- The topic stands last in each, so that the planner never walks an index to find the devices of a topic.
        CREATE UNIQUE INDEX device_installation ON device (installation_id, topic_id)
            WHERE installation_id IS NOT NULL;
        CREATE UNIQUE INDEX device_token ON device (token, environment, topic_id);
        CREATE INDEX device_user ON device (user_id, topic_id) WHERE user_id IS NOT NULL;

        -- A token APNs has accepted before. Apart from the device: a first run over a million devices would otherwise
        -- rewrite every page of them.
        CREATE TABLE proven_token (
            device_id INTEGER PRIMARY KEY,
            token_generation INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE token_history (
            device_id INTEGER NOT NULL REFERENCES device (id) ON DELETE CASCADE,
            token_generation INTEGER NOT NULL,
            token BLOB NOT NULL,
            environment INTEGER NOT NULL,
            replaced_at INTEGER NOT NULL,
            PRIMARY KEY (device_id, token_generation)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE tag (
            device_id INTEGER NOT NULL REFERENCES device (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            PRIMARY KEY (device_id, name)
        ) STRICT, WITHOUT ROWID;

        """

    private static let segments = """
        CREATE TABLE segment (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            name TEXT NOT NULL UNIQUE,
            -- 0 is static, its devices stand in segment_member; 1 is dynamic, an expression: as written, and as JSON.
            kind INTEGER NOT NULL DEFAULT 0 CHECK (kind IN (0, 1)),
            source TEXT,
            expression TEXT CHECK ((expression IS NULL) = (kind = 0)),
            -- Of a dynamic segment: when it was defined.
            members INTEGER NOT NULL DEFAULT 0,
            updated_at INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE segment_member (
            segment_id INTEGER NOT NULL REFERENCES segment (id) ON DELETE CASCADE,
            device_id INTEGER NOT NULL REFERENCES device (id) ON DELETE CASCADE,
            PRIMARY KEY (segment_id, device_id)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX segment_member_device ON segment_member (device_id);

        """

    private static let runs = """
        CREATE TABLE run (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            campaign TEXT NOT NULL,
            occurrence TEXT NOT NULL,
            state TEXT NOT NULL,
            state_reason TEXT,
            -- A person whose `resume` the run waits for; NULL where it paused itself.
            paused_by TEXT,
            -- What it met, where it paused itself.
            halt TEXT,
            is_frozen INTEGER NOT NULL DEFAULT 0,
            is_test INTEGER NOT NULL DEFAULT 0,
            created_at INTEGER NOT NULL,
            started_at INTEGER,
            finished_at INTEGER,
            -- The lock: who sends this run, and when it was last heard of.
            owner TEXT,
            heartbeat_at INTEGER,
            -- The account, changed in the transaction that changes the rows it counts.
            audience INTEGER NOT NULL DEFAULT 0,
            pending INTEGER NOT NULL DEFAULT 0,
            leased INTEGER NOT NULL DEFAULT 0,
            accepted INTEGER NOT NULL DEFAULT 0,
            rejected INTEGER NOT NULL DEFAULT 0,
            unknown INTEGER NOT NULL DEFAULT 0,
            suppressed INTEGER NOT NULL DEFAULT 0,
            devices_gone INTEGER NOT NULL DEFAULT 0,
            devices_suspended INTEGER NOT NULL DEFAULT 0,
            -- Once every delivery has its end state: requests made, and accepted deliveries of which an earlier request
            -- stayed without an answer. From then on outcome_summary has the rest of the report.
            requests INTEGER,
            possible_duplicates INTEGER,
            -- From then on there are no deliveries, or ever fewer: the summary is all that is left.
            outcomes_pruned_at INTEGER CHECK (outcomes_pruned_at IS NULL OR requests IS NOT NULL),
            -- Of the campaign's split, for whoever repeats it in SQL.
            holdout_seed INTEGER NOT NULL,
            variant_seed INTEGER NOT NULL,
            -- JSON, and its FNV-1a hash to tell whether it is still what was frozen.
            definition_hash INTEGER NOT NULL,
            definition TEXT NOT NULL,
            -- Of background pushes: of those that wait for their budget, a device keeps the newest of each key.
            coalesce_key TEXT,
            UNIQUE (campaign, occurrence)
        ) STRICT;
        CREATE INDEX run_coalescing ON run (coalesce_key, state) WHERE coalesce_key IS NOT NULL;

        -- The few that somebody has to see to, among all that ever were.
        CREATE INDEX run_open ON run (state) WHERE state IN ('scheduled', 'running');

        -- From when on a campaign's schedule is obeyed, see ScheduleMark.
        CREATE TABLE schedule_mark (
            campaign TEXT NOT NULL PRIMARY KEY,
            schedule_hash INTEGER NOT NULL,
            since INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        -- The daemon's sign of life: one row or none.
        CREATE TABLE daemon (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            owner TEXT NOT NULL,
            started_at INTEGER NOT NULL,
            heartbeat_at INTEGER NOT NULL,
            -- JSON, see DaemonStatus.
            status TEXT NOT NULL
        ) STRICT;

        CREATE TABLE event (
            id INTEGER PRIMARY KEY,
            at INTEGER NOT NULL,
            kind TEXT NOT NULL,
            run_id INTEGER,
            -- In whose name; what follows the detail is about the process that wrote it.
            actor TEXT NOT NULL,
            detail TEXT NOT NULL,
            -- JSON: path to SHA-256 of the files it is about.
            files TEXT,
            uid INTEGER,
            user TEXT,
            command TEXT,
            origin TEXT
        ) STRICT;
        CREATE INDEX event_run ON event (run_id) WHERE run_id IS NOT NULL;

        """

    private static let feeds = """
        -- What a campaign's feed said last; the address is part of it, since another feed begins anew.
        CREATE TABLE feed (
            campaign TEXT NOT NULL PRIMARY KEY,
            url TEXT NOT NULL,
            etag TEXT,
            last_modified TEXT,
            polled_at INTEGER NOT NULL,
            -- 0 until the address has answered with a feed.
            is_read INTEGER NOT NULL,
            failures INTEGER NOT NULL,
            problem TEXT
        ) STRICT, WITHOUT ROWID;

        -- Items that start nothing any more: they have a run, or stood in the feed when it was first polled. `item` is
        -- the occurrence key made of the item's guid.
        CREATE TABLE feed_item (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            campaign TEXT NOT NULL,
            item TEXT NOT NULL,
            seen_at INTEGER NOT NULL,
            UNIQUE (campaign, item)
        ) STRICT;

        """

    private static let webhooks = """
        -- Who is told when a run comes into which state: the configuration's webhooks, as of the last process that sent.
        CREATE TABLE webhook (
            url TEXT NOT NULL,
            event TEXT NOT NULL,
            PRIMARY KEY (url, event)
        ) STRICT, WITHOUT ROWID;

        -- What they are still to be told, written with the change of state and removed once it is taken.
        CREATE TABLE webhook_message (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            event_id INTEGER NOT NULL,
            url TEXT NOT NULL,
            run_id INTEGER NOT NULL,
            state TEXT NOT NULL,
            reason TEXT,
            at INTEGER NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0,
            next_at INTEGER NOT NULL,
            problem TEXT,
            UNIQUE (event_id, url)
        ) STRICT;
        CREATE INDEX webhook_message_next ON webhook_message (next_at);

        """

    private static let deliveries = """
        -- One insert at the freeze, one update at the outcome. `attempt` counts requests with an outcome, `doubts`
        -- those of them whose outcome nobody knows. `not_before`
        -- is NULL for a delivery never put off, the greatest integer while one that was is leased again. `variant`
        -- counts the campaign's variants from 0; `wave` is when its wave starts, in runs that follow each device's clock;
        -- `locale_index` the locales of the variant's own template. `held_for` is the reason it was last put off for on
        -- purpose, before any request, and `held_until` its time then; both stay.
        -- No foreign keys: their checks would cost a lookup per row, and deliveries outlive their device.
        CREATE TABLE delivery (
            run_id INTEGER NOT NULL,
            device_id INTEGER NOT NULL,
            environment INTEGER NOT NULL,
            state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 4),
            attempt INTEGER NOT NULL,
            doubts INTEGER NOT NULL,
            generation INTEGER NOT NULL,
            variant INTEGER,
            wave INTEGER,
            not_before INTEGER,
            locale_index INTEGER,
            held_for TEXT,
            held_until INTEGER,
            status INTEGER NOT NULL,
            reason TEXT,
            changed_at INTEGER NOT NULL,
            PRIMARY KEY (run_id, device_id)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX delivery_waiting ON delivery (run_id, environment, not_before)
            WHERE state = 0 AND not_before IS NOT NULL;

        -- What became of a run that has nothing left to do: a row for each kind of delivery.
        CREATE TABLE outcome_summary (
            id INTEGER PRIMARY KEY,
            run_id INTEGER NOT NULL REFERENCES run (id),
            environment INTEGER NOT NULL,
            variant INTEGER,
            locale_index INTEGER,
            state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 4),
            status INTEGER NOT NULL,
            reason TEXT,
            deliveries INTEGER NOT NULL CHECK (deliveries > 0)
        ) STRICT;
        CREATE INDEX outcome_summary_run ON outcome_summary (run_id);

        -- Deliveries in flight, a chunk per row; `open` of the entries have no outcome yet.
        CREATE TABLE lease (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            run_id INTEGER NOT NULL,
            owner TEXT NOT NULL,
            leased_at INTEGER NOT NULL,
            environment INTEGER NOT NULL,
            open INTEGER NOT NULL CHECK (open > 0),
            -- How many of its tokens were never accepted before; 1 if it reserved silent budget.
            unproven INTEGER NOT NULL,
            is_silent INTEGER NOT NULL,
            -- The last device taken fresh, 0 if all had been put off: nothing up to here is fresh again before a recovery.
            fresh_until INTEGER NOT NULL,
            entries BLOB NOT NULL
        ) STRICT;
        CREATE INDEX lease_run ON lease (run_id);

        -- Background pushes that left counts, or may have: from `reserved_at` to `settled_at` (NULL: still in flight).
        CREATE TABLE silent_ledger (
            device_id INTEGER NOT NULL,
            run_id INTEGER NOT NULL,
            attempt INTEGER NOT NULL,
            reserved_at INTEGER NOT NULL,
            settled_at INTEGER,
            PRIMARY KEY (device_id, run_id, attempt)
        ) STRICT, WITHOUT ROWID;

        """

    /// The views of ``AnalystView`` as of this version, for analysts with a SQLite shell. An `audience_sql` uses the
    /// same names.
    private static let views = """
        CREATE VIEW device_view AS SELECT device.id AS id, topic.name AS topic, CASE environment WHEN 0 THEN 'production' ELSE 'sandbox' END AS environment,
        CASE status WHEN 0 THEN 'active' WHEN 1 THEN 'suspended' ELSE 'gone' END AS status, status_reason,
        installation_id, user_id, locale, time_zone, country, app_version, app_version_key, os_version, os_version_key,
        model, alerts_allowed, badge, registered_at, last_seen_at, attributes FROM device LEFT JOIN topic ON topic.id = device.topic_id;
        CREATE VIEW tag_view AS SELECT device_id, name AS tag FROM tag;
        CREATE VIEW segment_view AS SELECT segment.name AS segment, segment_member.device_id AS device_id FROM segment_member JOIN segment ON segment.id = segment_member.segment_id;
        CREATE VIEW delivery_view AS SELECT run_id, run.campaign AS campaign, run.occurrence AS occurrence, device_id, CASE environment WHEN 0 THEN 'production' ELSE 'sandbox' END AS environment,
        CASE delivery.state
            WHEN 0 THEN 'pending' WHEN 1 THEN 'accepted' WHEN 2 THEN 'rejected' WHEN 3 THEN 'unknown'
            ELSE 'suppressed'
        END AS state,
        delivery.status AS status, delivery.reason AS reason, delivery.attempt AS attempts,
        json_extract(run.definition, '$.campaign.variants[' || delivery.variant || '].name') AS variant,
        delivery.changed_at AS changed_at FROM delivery JOIN run ON run.id = delivery.run_id WHERE run.is_test = 0;
        CREATE VIEW run_view AS SELECT id, campaign, occurrence, state, is_test, created_at, started_at, finished_at, holdout_seed, variant_seed FROM run;

        """
}
