import GRDB
package import Model
package import Store

extension SQLiteFileStore {
    package func setWebhooks(_ webhooks: [Model.Configuration.Webhook]) async throws {
        let wanted = Set(webhooks.flatMap { hook in hook.events.map { [hook.url, $0.rawValue] } })
        let known = try await read(.short) { db in
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
                    id: row[0], event: row[1], url: row[2], run: row[3],
                    kind: Model.Configuration.Webhook.Event(rawValue: row[4]) ?? .failed, reason: row[5],
                    at: Timestamp(milliseconds: row[6]), attempts: row[7])
            }.sorted { $0.id < $1.id }
        }
    }

    package func removeWebhookMessage(_ id: Int64) async throws {
        try await write { db in
            try db.execute(sql: "DELETE FROM webhook_message WHERE id = :id", arguments: ["id": id])
        }
    }

    package func postponeWebhookMessage(_ id: Int64, until: Timestamp, problem: String) async throws {
        try await write { db in
            try db.execute(
                sql: "UPDATE webhook_message SET next_at = :until, problem = :problem WHERE id = :id",
                arguments: ["id": id, "until": until.milliseconds, "problem": problem])
        }
    }

    package func nextWebhookMessage() async throws -> Timestamp? {
        try await read(.short) { db in
            Timestamp(stored: try Int64.fetchOne(db, sql: "SELECT min(next_at) FROM webhook_message"))
        }
    }
}

/// What webhooks are to be told, written in the transaction that makes it true: a crash loses none of it.
enum Outbox {
    /// A pause a person asked for is no news to whoever asked; tests concern nobody. A late run is told as `late` to those
    /// who asked for that, and as `paused` to those who asked for pauses alone: each hears of it once. A finished run that is
    /// no success is told as `unsuccessful` and `finished` in the same way.
    static func add(
        _ state: RunState, halt: RunHalt?, of run: Int64, reason: String?, pausedBy: String?, event: Int64,
        now: Timestamp, _ db: Database
    ) throws {
        guard pausedBy == nil else { return }
        try db.execute(
            sql: """
                INSERT INTO webhook_message (event_id, url, run_id, state, reason, at, next_at)
                SELECT :event, url, :run, CASE WHEN max(event = :word) THEN :word ELSE :state END, :reason, :now, :now
                FROM webhook
                WHERE event IN (:word, :state) AND EXISTS (SELECT 1 FROM run WHERE id = :run AND is_test = 0)
                GROUP BY url
                """,
            arguments: [
                "event": event, "run": run, "state": state.rawValue,
                "word": Model.Configuration.Webhook.Event.word(of: state, halt), "reason": reason,
                "now": now.milliseconds,
            ])
    }
}
