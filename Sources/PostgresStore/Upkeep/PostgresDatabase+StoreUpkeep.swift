package import Model
import RelationalStore
package import Store

extension PostgresDatabase {
    package func observation(now: Timestamp) async throws -> StoreObservation {
        try await read(.short) { db in
            let states = try db.all("SELECT state, count(*) FROM run WHERE NOT is_test GROUP BY state") {
                (try $0.text(0), try $0.int(1))
            }
            let runs = states.compactMap { word, count in RunState(rawValue: word).map { ($0, count) } }
            let queues = try db.all(
                """
                SELECT id, campaign, pending, leased FROM run WHERE state IN (\(SQLConstants.list(RunState.unfinished)))
                ORDER BY id
                """
            ) { row in
                let run = try row.int64(0)
                let due = try Self.firstDue(run, db)
                return StoreObservation.Queue(
                    run: run, campaign: try row.text(1), pending: try row.int(2), leased: try row.int(3),
                    overdue: due.map { $0 < now ? now - $0 : .zero } ?? .zero)
            }
            var observation = StoreObservation(
                runs: Dictionary(uniqueKeysWithValues: runs), queues: queues, logBytes: 0)
            observation.unreadableRuns = try RunClauses.unreadable(db).count
            try Self.observeWaits(&observation, db)
            return observation
        }
    }

    /// Counts what waits for a person or another server. Each statement reads an index or a small table.
    private static func observeWaits(_ observation: inout StoreObservation, _ db: PostgresSession) throws {
        let halts = try db.all(
            """
            SELECT halt, count(*) FROM run WHERE state = 'paused' AND paused_by IS NULL AND NOT is_test GROUP BY halt
            """
        ) { (halt: try $0.textOrNil(0), count: try $0.int(1)) }
        observation.countHalts(halts)
        observation.openApprovals =
            try db.first(
                "SELECT count(*) FROM approval WHERE state = '\(ApprovalRequest.State.open.rawValue)'"
            ) { try $0.int(0) } ?? 0
        let messages = try db.first(
            "SELECT count(*), min(at) FROM webhook_message WHERE url IN (SELECT url FROM webhook)"
        ) { (count: try $0.int(0), oldest: try $0.timestampOrNil(1)) }
        observation.webhookMessages = messages?.count ?? 0
        observation.oldestWebhookMessage = messages?.oldest
        observation.failingFeeds =
            try db.first("SELECT count(*) FROM feed WHERE failures > 0") { try $0.int(0) } ?? 0
        observation.backedUpAt =
            try db.first(
                "SELECT at FROM event WHERE kind = '\(EventKind.backedUp.rawValue)' ORDER BY id DESC LIMIT 1"
            ) { try $0.timestampOrNil(0) } ?? nil
        observation.beganAt =
            try db.first("SELECT at FROM event ORDER BY id LIMIT 1") { try $0.timestampOrNil(0) } ?? nil
    }

    private static func firstDue(_ run: Int64, _ db: PostgresSession) throws -> Timestamp? {
        let moments = try PushEnvironment.allCases.compactMap { environment in
            try db.first(
                """
                SELECT min(not_before) FROM \(DeliveryTable(run: run).name)
                WHERE environment = \(environment.code) AND state = \(DeliveryState.pending.code)
                    AND not_before < \(NotBefore.heldFrom)
                """
            ) { try $0.timestampOrNil(0) } ?? nil
        }
        return moments.min()
    }

    /// Rewrites all tables, to free the space of rows that were deleted one by one. Dropped outcomes free their
    /// space without a rewrite. Other users of a table wait while it is rewritten.
    package func shrink() async throws {
        let tables = try await read(.short) { db in
            try db.all(
                """
                SELECT quote_ident(relname) FROM pg_class
                WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' ORDER BY relname
                """
            ) {
                try $0.text(0)
            }
        }
        for table in tables { try await outsideTransactions { db in try db.run("VACUUM FULL \(table)") } }
    }

    /// Returns the size of the database, with 0 free bytes. Dropped outcomes leave no free space, and the server
    /// reuses the space inside tables automatically.
    package func size() async throws -> StoreSize {
        try await read(.short) { db in
            let bytes = try db.first("SELECT pg_database_size(current_database())") { try $0.int(0) }
            return StoreSize(bytes: bytes ?? 0, freeBytes: 0)
        }
    }

    /// Returns the indexes that the server marks as invalid.
    package func integrity() async throws -> [String] {
        try await read { db in
            try db.all(
                """
                SELECT 'index ' || indexrelid::regclass || ' is not valid; REINDEX it' FROM pg_index
                JOIN pg_class ON pg_class.oid = indrelid
                WHERE NOT indisvalid AND relnamespace = current_schema()::regnamespace ORDER BY 1
                """
            ) { try $0.text(0) }
        }
    }

    /// Always throws, because a server has its own tools for backups, such as `pg_dump`.
    package func backUp(to path: String, overwriting: Bool) async throws -> BackupSummary {
        throw StoreError.cannotMake(
            path: path, reason: "back up a store on PostgreSQL with `pg_dump`, or with its whole cluster")
    }
}
