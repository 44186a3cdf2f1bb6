import GRDB
package import Store
package import Model

extension SQLiteFileStore {
    /// Sets who is told what from now on. Messages to webhooks that are no longer among them are dropped.
    package func setWebhooks(_ webhooks: [Model.Configuration.Webhook]) async throws {
        let wanted = Set(webhooks.flatMap { hook in hook.events.map { [hook.url, $0.rawValue] } })
        let known = try await read { db in
            Set(try Row.fetchAll(db, sql: "SELECT url, event FROM webhook").map { [$0[0], $0[1]] as [String] })
        }
        // Almost always there is nothing to write.
        guard wanted != known else { return }
        try await write { db in
            try db.execute(sql: "DELETE FROM webhook")
            for pair in wanted {
                try db.execute(
                    sql: "INSERT INTO webhook (url, event) VALUES (:url, :event)",
                    arguments: ["url": pair[0], "event": pair[1]])
            }
            try db.execute(sql: "DELETE FROM webhook_message WHERE url NOT IN (SELECT url FROM webhook)")
        }
    }

    /// Takes messages that are due, oldest first, each counted as tried. Nobody else gets them before `until`; whoever
    /// dies with one in hand has it sent again after that.
    package func takeWebhookMessages(now: Timestamp, limit: Int, until: Timestamp) async throws -> [WebhookMessage] {
        try await write { db in
            try Row.fetchAll(
                db,
                sql: """
                    UPDATE webhook_message SET attempts = attempts + 1, next_at = :until
                    WHERE id IN (SELECT id FROM webhook_message WHERE next_at <= :now ORDER BY id LIMIT :limit)
                    RETURNING id, event_id, url, run_id, state, reason, at, attempts
                    """,
                arguments: ["now": now.milliseconds, "until": until.milliseconds, "limit": limit]
            ).map { row in
                WebhookMessage(
                    id: row[0], event: row[1], url: row[2], run: row[3], state: RunState(rawValue: row[4]) ?? .failed,
                    reason: row[5], at: Timestamp(milliseconds: row[6]), attempts: row[7])
            }.sorted { $0.id < $1.id }
        }
    }

    /// Told, or given up: the message is done.
    package func removeWebhookMessage(_ id: Int64) async throws {
        try await write { db in
            try db.execute(sql: "DELETE FROM webhook_message WHERE id = :id", arguments: ["id": id])
        }
    }

    /// Not before that time again.
    package func postponeWebhookMessage(_ id: Int64, until: Timestamp, problem: String) async throws {
        try await write { db in
            try db.execute(
                sql: "UPDATE webhook_message SET next_at = :until, problem = :problem WHERE id = :id",
                arguments: ["id": id, "until": until.milliseconds, "problem": problem])
        }
    }

    /// When the next message is due; nil: there is none.
    package func nextWebhookMessage() async throws -> Timestamp? {
        try await read { db in
            Timestamp(stored: try Int64.fetchOne(db, sql: "SELECT min(next_at) FROM webhook_message"))
        }
    }
}
