import Model
import RelationalStore
package import Store

extension PostgresDatabase {
    private static let observingTime: Duration = .seconds(5)
    /// The tables whose rows change with every batch of pushes, in addition to the deliveries of unfinished runs.
    private static let busyTables = [
        "run", "lease", "chunk", "silent_slot", "silent_ledger", "sender", "run_sender", "event_chain",
    ]
    /// The maximum number of runs observed: the latest unfinished ones.
    private static let runsMax = 20

    package func server() async throws -> ServerObservation? {
        try await read(.reading.within(Self.observingTime), from: pool) { [hosts = pool.hosts] db in
            var server = try Self.facts(db)
            server.oldestTransaction = try Self.oldestTransaction(db)
            server.tables = try Self.tables(db)
            server.connectionsPerSender = Self.connectionsMax
            server.refusal = hosts.refusal?.description
            return server
        }
    }

    /// The maximum number of connections of one process.
    private static let connectionsMax =
        writersMax + bulkWritersMax + PostgresLimits.readersMax + expensiveReadersMax + beatConnections

    private static func facts(_ db: PostgresSession) throws -> ServerObservation {
        let facts = try db.first(
            """
            SELECT current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean,
                current_setting('fsync')::boolean, current_setting('full_page_writes')::boolean,
                current_setting('max_connections')::bigint,
                current_setting('superuser_reserved_connections')::bigint
                    + coalesce(current_setting('reserved_connections', true)::bigint, 0),
                (SELECT coalesce(sum(numbackends), 0)::bigint FROM pg_stat_database),
                pg_database_size(current_database()), pg_has_role('pg_read_all_stats', 'USAGE'),
                current_setting('max_locks_per_transaction')::bigint * (
                    current_setting('max_connections')::bigint
                        + current_setting('max_prepared_transactions')::bigint
                ),
                (SELECT count(*) FROM run WHERE outcomes_pruned_at IS NULL)
            """
        ) { row in
            var server = ServerObservation()
            server.hasAutovacuum = try row.bool(0)
            server.hasFsync = try row.bool(1)
            server.hasFullPageWrites = try row.bool(2)
            server.connectionsMax = try row.int(3)
            server.connectionsForUsers = try row.int(3) - row.int(4)
            server.connections = try row.int(5)
            server.bytes = try row.int(6)
            server.seesAllSessions = try row.bool(7)
            server.locksMax = try row.int(8)
            server.locksOfRuns = try row.int(9) * DeliveryTable.relations
            return server
        }
        return facts ?? ServerObservation()
    }

    /// Returns the oldest open transaction. Autovacuum workers are left out, because they do not stop other workers
    /// from removing old rows. Sessions of other users are visible only to a role that may read all statistics.
    private static func oldestTransaction(_ db: PostgresSession) throws -> ServerObservation.Transaction? {
        try db.first(
            """
            SELECT floor(extract(epoch FROM clock_timestamp() - since) * 1000)::bigint, who FROM (
                SELECT xact_start AS since,
                    'session ' || pid || ' (' || concat_ws(', ', nullif(application_name, ''), state) || ')' AS who
                FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
                    AND coalesce(backend_xmin, backend_xid) IS NOT NULL
                    AND backend_type IS DISTINCT FROM 'autovacuum worker'
                UNION ALL
                SELECT prepared, 'the prepared transaction ' || quote_literal(gid) FROM pg_prepared_xacts
                WHERE database = current_database()
            ) AS open
            ORDER BY since LIMIT 1
            """
        ) { row in
            ServerObservation.Transaction(age: .milliseconds(max(0, try row.int64(0))), who: try row.text(1))
        }
    }

    private static func tables(_ db: PostgresSession) throws -> [ServerObservation.Table] {
        let runs = try db.all(
            """
            SELECT id FROM run WHERE state IN (\(SQLConstants.list(RunState.unfinished))) ORDER BY id DESC LIMIT $1
            """, runsMax
        ) { DeliveryTable(run: try $0.int64(0)).name }
        return try db.all(
            """
            SELECT relname::text, n_live_tup, n_dead_tup, coalesce(pg_total_relation_size(relid), 0),
                floor(extract(epoch FROM last_autovacuum) * 1000)::bigint
            FROM pg_stat_user_tables WHERE schemaname = current_schema() AND relname = ANY ($1) ORDER BY relname
            """, busyTables + runs
        ) { row in
            ServerObservation.Table(
                name: try row.text(0), liveRows: try row.int(1), deadRows: try row.int(2), bytes: try row.int(3),
                autovacuumedAt: try row.timestampOrNil(4))
        }
    }
}
