import Model
package import Store

extension RelationalStore {
    package func feedState(campaign: String) async throws -> FeedState? {
        try await snapshot(.short) { db in try Self.feedState(campaign, db, isLocked: false) }
    }

    package func seenFeedItems(campaign: String, among keys: [String]) async throws -> Set<String> {
        try await snapshot(.short) { db in
            Set(
                try db.all(
                    "SELECT item FROM feed_item WHERE campaign = $1 AND item \(Session.dialect.isAny(2))", campaign,
                    keys
                ) {
                    try $0.text(0)
                })
        }
    }

    package func recordFeedPoll(
        campaign: String, _ state: FeedState, seen keys: [String], after known: FeedState?
    ) async throws -> Bool {
        try await transaction(.quick) { db in
            let isUnchanged =
                try known == nil
                ? Self.insert(campaign, state, db) : Self.feedState(campaign, db, isLocked: true) == known
            guard isUnchanged else { return false }
            try db.execute(
                """
                UPDATE feed SET
                    url = $2, etag = $3, last_modified = $4, polled_at = $5, is_read = $6, failures = $7, problem = $8
                WHERE campaign = $1
                """, campaign, state.url, state.etag, state.lastModified, state.polledAt, state.isRead, state.failures,
                state.problem)
            // Insert the last item of the document first. It is the oldest item, and the first to be deleted.
            try db.execute(
                """
                INSERT INTO feed_item (campaign, item, seen_at)
                SELECT $1, value, $3 FROM \(Session.dialect.each(2)) WHERE true ORDER BY key
                ON CONFLICT (campaign, item) DO NOTHING
                """, campaign, Array(keys.reversed()), state.polledAt)
            if !keys.isEmpty { try Self.forgetOldItems(of: campaign, db) }
            return true
        }
    }

    /// Returns `false` if the campaign already has a state.
    private static func insert(_ campaign: String, _ state: FeedState, _ db: Session) throws -> Bool {
        try db.execute(
            """
            INSERT INTO feed (campaign, url, polled_at, is_read, failures) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (campaign) DO NOTHING
            """, campaign, state.url, state.polledAt, state.isRead, state.failures) > 0
    }

    private static func feedState(
        _ campaign: String, _ db: Session, isLocked: Bool
    ) throws -> FeedState? {
        try db.first(
            """
            SELECT url, etag, last_modified, polled_at, is_read, failures, problem FROM feed WHERE campaign = $1
            \(isLocked ? Session.dialect.lock : "")
            """, campaign
        ) { row in
            FeedState(
                url: try row.text(0), etag: try row.textOrNil(1), lastModified: try row.textOrNil(2),
                polledAt: try row.timestamp(3), isRead: try row.bool(4), failures: try row.int(5),
                problem: try row.textOrNil(6))
        }
    }

    private static func forgetOldItems(of campaign: String, _ db: Session) throws {
        try db.execute(
            """
            DELETE FROM feed_item WHERE campaign = $1 AND id <= (
                SELECT id FROM feed_item WHERE campaign = $1 ORDER BY id DESC LIMIT 1 OFFSET $2
            )
            """, campaign, FeedLimits.itemsMax)
    }
}

private enum FeedLimits {
    /// The maximum number of items stored per feed. Older items are deleted.
    static let itemsMax = 20_000
}
