import GRDB
package import Store
package import Model

extension SQLiteFileStore {
    /// Items of a feed that are remembered; the oldest are forgotten beyond that.
    package static let feedItemsMax = 20_000

    /// Nil: the campaign's feed was never polled.
    package func feedState(campaign: String) async throws -> FeedState? {
        try await read { db in try Self.feedState(campaign, db) }
    }

    /// Those of the items that an earlier poll saw, whatever became of them.
    package func seenFeedItems(campaign: String, among keys: [String]) async throws -> Set<String> {
        try await read { db in
            let statement = try db.cachedStatement(
                sql: "SELECT 1 FROM feed_item WHERE campaign = :campaign AND item = :item")
            return Set(
                try keys.filter { key in
                    try Row.fetchOne(statement, arguments: ["campaign": campaign, "item": key]) != nil
                })
        }
    }

    /// Puts a poll on record: the feed's state, and its items as seen. To be called when the runs of the new items are in
    /// the store, since an item that was seen starts nothing any more. False, with nothing written, when another process
    /// has polled since `known` was read.
    package func recordFeedPoll(
        campaign: String, _ state: FeedState, seen keys: [String], after known: FeedState?
    ) async throws -> Bool {
        try await write { db in
            guard try Self.feedState(campaign, db) == known else { return false }
            try db.execute(
                sql: """
                    INSERT OR REPLACE INTO feed (
                        campaign, url, etag, last_modified, polled_at, is_read, failures, problem
                    ) VALUES (:campaign, :url, :etag, :modified, :at, :read, :failures, :problem)
                    """,
                arguments: [
                    "campaign": campaign, "url": state.url, "etag": state.etag, "modified": state.lastModified,
                    "at": state.polledAt.milliseconds, "read": state.isRead, "failures": state.failures,
                    "problem": state.problem,
                ])
            let statement = try db.cachedStatement(
                sql: """
                    INSERT INTO feed_item (campaign, item, seen_at) VALUES (:campaign, :item, :at)
                    ON CONFLICT (campaign, item) DO NOTHING
                    """)
            // The last of the document first: it is the oldest, and the first to be forgotten.
            for key in keys.reversed() {
                try statement.execute(
                    arguments: ["campaign": campaign, "item": key, "at": state.polledAt.milliseconds])
            }
            if !keys.isEmpty { try Self.forgetOldItems(of: campaign, db) }
            return true
        }
    }

    /// Runs that a feed started and that are not over: those of a poll that was cut short, too. Whoever has one in hand
    /// keeps it.
    package func openFeedRuns(campaign: String) async throws -> [Run] {
        try await read { db in
            try RunRow.fetch(
                db,
                """
                WHERE campaign = :campaign AND state IN ('scheduled', 'running') AND is_test = 0
                    AND occurrence LIKE 'item-%' ORDER BY id
                """, ["campaign": campaign])
        }
    }

    private static func feedState(_ campaign: String, _ db: Database) throws -> FeedState? {
        try Row.fetchOne(
            db,
            sql: """
                SELECT url, etag, last_modified, polled_at, is_read, failures, problem FROM feed WHERE campaign = :campaign
                """, arguments: ["campaign": campaign]
        ).map { row in
            FeedState(
                url: row[0], etag: row[1], lastModified: row[2], polledAt: Timestamp(milliseconds: row[3]),
                isRead: row[4], failures: row[5], problem: row[6])
        }
    }

    private static func forgetOldItems(of campaign: String, _ db: Database) throws {
        try db.execute(
            sql: """
                DELETE FROM feed_item WHERE campaign = :campaign AND id <= (
                    SELECT id FROM feed_item WHERE campaign = :campaign ORDER BY id DESC LIMIT 1 OFFSET :kept
                )
                """, arguments: ["campaign": campaign, "kept": feedItemsMax])
    }
}
