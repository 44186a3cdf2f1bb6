package import Model
package import Store

/// The messages for webhooks, written in the transaction of the change they announce. A crash loses none of them.
enum Outbox {
    /// Adds the messages about a new state of a run. Tests and pauses by a person cause none.
    ///
    /// A webhook gets one message per change. For a late run, a webhook that lists the event `late` gets `late`, and
    /// one that lists only `paused` gets `paused`. For a run that finished without success, the events are
    /// `unsuccessful` and `finished`.
    static func add<Session: SQLSession>(
        _ state: RunState, halt: RunHalt?, of run: Int64, reason: String?, pausedBy: String?, event: Int64,
        now: Timestamp, _ db: Session
    ) throws {
        guard pausedBy == nil else { return }
        let word = Configuration.Webhook.Event.word(of: state, halt)
        try db.execute(
            """
            INSERT INTO webhook_message (event_id, url, run_id, state, reason, at, next_at)
            SELECT $1, url, $2, CASE WHEN max(CASE WHEN event = $3 THEN 1 ELSE 0 END) = 1 THEN $3 ELSE $4 END, $5, $6, $7
            FROM webhook
            WHERE event IN ($3, $4)
                AND EXISTS (SELECT 1 FROM run WHERE id = $2 AND \(Session.dialect.isFalse("is_test")))
            GROUP BY url
            """, event, run, word, state.rawValue, reason, now, try db.moment(now))
    }

    /// Adds the messages about the approval of a plan.
    static func add<Session: SQLSession>(
        _ kind: Configuration.Webhook.Event, approval: Int64, event: Int64, now: Timestamp, _ db: Session
    ) throws {
        try db.execute(
            """
            INSERT INTO webhook_message (event_id, url, run_id, approval_id, state, at, next_at)
            SELECT $1, url, 0, $2, $3, $4, $5 FROM webhook WHERE event = $3
            """, event, approval, kind.rawValue, now, try db.moment(now))
    }
}

extension RelationalStore {
    package func takeWebhookMessages(
        now: Timestamp, limit: Int, until: Timestamp, of urls: Set<String>?
    ) async throws -> [WebhookMessage] {
        if urls?.isEmpty == true { return [] }
        let chosen = Self.isWanted(urls, from: 4)
        let (messages, ahead) = try await transaction(.quick) { db in
            let ahead = try db.moment(now) - now
            let messages = try db.all(
                .once(
                    """
                    WITH due AS MATERIALIZED (
                        SELECT id FROM webhook_message WHERE next_at <= $1 AND \(chosen)
                        ORDER BY id LIMIT $3\(Session.dialect.skipLocked)
                    )
                    UPDATE webhook_message SET attempts = attempts + 1, next_at = $2 WHERE id IN (SELECT id FROM due)
                    RETURNING id, event_id, url, run_id, state, reason, at, attempts, approval_id
                    """), values: [now + ahead, until + ahead, limit] + (urls?.sorted() ?? [])
            ) { row in
                WebhookMessage(
                    id: try row.int64(0), event: try row.int64(1), url: try row.text(2), run: try row.int64(3),
                    kind: Configuration.Webhook.Event(rawValue: try row.text(4)) ?? .failed,
                    reason: try row.textOrNil(5), at: try row.timestamp(6), attempts: try row.int(7),
                    approval: try row.int64OrNil(8))
            }
            return (messages.sorted { $0.id < $1.id }, ahead)
        }
        webhooksAhead = ahead
        return messages
    }

    package func removeWebhookMessage(_ id: Int64) async throws {
        try await transaction(.quick) { db in try db.execute("DELETE FROM webhook_message WHERE id = $1", id) }
    }

    package func postponeWebhookMessage(_ id: Int64, until: Timestamp, problem: String) async throws {
        // Convert to the store's clock, by which the message was claimed.
        let until = until + webhooksAhead
        try await transaction(.quick) { db in
            try db.execute("UPDATE webhook_message SET next_at = $2, problem = $3 WHERE id = $1", id, until, problem)
        }
    }

    package func nextWebhookMessage(of urls: Set<String>?) async throws -> Timestamp? {
        if urls?.isEmpty == true { return nil }
        let chosen = Self.isWanted(urls, from: 1)
        let next = try await snapshot(.short) { db in
            try db.all(
                .once("SELECT min(next_at) FROM webhook_message WHERE \(chosen)"), values: urls?.sorted() ?? []
            ) { try $0.timestampOrNil(0) }.first ?? nil
        }
        return next.map { $0 - webhooksAhead }
    }

    /// Returns the condition that a message is for a registered webhook, and for one of these. Their sorted URLs are
    /// the values from this place on.
    private static func isWanted(_ urls: Set<String>?, from place: Int) -> String {
        let places = urls.map { urls in urls.indices.enumerated().map { "$\($0.offset + place)" } }
        return "url IN (SELECT url FROM webhook)"
            + (places.map { " AND url IN (\($0.joined(separator: ", ")))" } ?? "")
    }
}
