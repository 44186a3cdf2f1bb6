/// The profile of a device at its delivery's freeze, and the totals of a run's deliveries by profile.
enum SchemaVersion7 {
    static let sql = """
        -- Empty texts: not known.
        CREATE TABLE delivery_profile (
            id INTEGER PRIMARY KEY,
            locale TEXT NOT NULL,
            app_version TEXT NOT NULL,
            time_zone TEXT NOT NULL,
            country TEXT NOT NULL,
            UNIQUE (locale, app_version, time_zone, country)
        ) STRICT;
        -- NULL: frozen by an earlier version.
        ALTER TABLE delivery ADD COLUMN profile INTEGER;
        -- Beside outcome_summary, see DeliveryBreakdown. A run that an earlier version summarized has none.
        CREATE TABLE outcome_slice (
            run_id INTEGER NOT NULL REFERENCES run (id),
            dimension TEXT NOT NULL,
            value TEXT NOT NULL,
            state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 4),
            deliveries INTEGER NOT NULL CHECK (deliveries > 0),
            PRIMARY KEY (run_id, dimension, value, state)
        ) STRICT, WITHOUT ROWID;

        """
}
