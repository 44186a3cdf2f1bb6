import GRDB
package import Model
package import Store

extension SQLiteFileStore {
    package func becomeDaemon(owner: String, now: Timestamp) async throws -> DaemonHeartbeat? {
        let isAlive = isAlive
        let status = try StoredJSON.text(DaemonStatus())
        return try await write { db in
            if let other = try Self.heartbeat(db), other.owner != owner, isAlive(other.owner) { return other }
            try db.execute(
                sql: """
                    INSERT OR REPLACE INTO daemon (id, owner, started_at, heartbeat_at, status)
                    VALUES (1, :owner, :now, :now, :status)
                    """, arguments: ["owner": owner, "now": now.milliseconds, "status": status])
            return nil
        }
    }

    package func daemonHeartbeat(owner: String, _ status: DaemonStatus, now: Timestamp) async throws -> Bool {
        let status = try StoredJSON.text(status)
        return try await write { db in
            try db.execute(
                sql: "UPDATE daemon SET heartbeat_at = :now, status = :status WHERE owner = :owner",
                arguments: ["owner": owner, "now": now.milliseconds, "status": status])
            return db.changesCount > 0
        }
    }

    package func resignDaemon(owner: String) async throws {
        try await write { db in
            try db.execute(sql: "DELETE FROM daemon WHERE owner = :owner", arguments: ["owner": owner])
        }
    }

    package func daemon() async throws -> DaemonHeartbeat? {
        let isAlive = isAlive
        return try await read(.short) { db in
            try Self.heartbeat(db).flatMap { isAlive($0.owner) ? $0 : nil }
        }
    }

    private static func heartbeat(_ db: Database) throws -> DaemonHeartbeat? {
        let row = try Row.fetchOne(db, sql: "SELECT owner, started_at, heartbeat_at, status FROM daemon")
        return row.map { row in
            DaemonHeartbeat(
                owner: row[0], startedAt: Timestamp(milliseconds: row[1]), heartbeatAt: Timestamp(milliseconds: row[2]),
                status: ReadableRows.value(row[3], otherwise: DaemonStatus()))
        }
    }

    // MARK: schedules

    package func scheduleMarks() async throws -> [String: ScheduleMark] {
        try await read(.short) { db in
            let rows = try Row.fetchAll(db, sql: "SELECT campaign, schedule_hash, since FROM schedule_mark")
            return Dictionary(
                rows.map { row in
                    let mark = ScheduleMark(
                        campaign: row[0], scheduleHash: row[1], since: Timestamp(milliseconds: row[2]))
                    return (mark.campaign, mark)
                }
            ) { _, last in last }
        }
    }

    package func setScheduleMarks(_ marks: [ScheduleMark]) async throws {
        guard !marks.isEmpty else { return }
        try await write { db in
            let statement = try db.cachedStatement(
                sql: """
                    INSERT INTO schedule_mark (campaign, schedule_hash, since) VALUES (:campaign, :hash, :since)
                    ON CONFLICT (campaign) DO UPDATE SET
                        since = CASE
                            WHEN schedule_hash = excluded.schedule_hash THEN min(since, excluded.since)
                            ELSE excluded.since
                        END,
                        schedule_hash = excluded.schedule_hash
                    """)
            for mark in marks {
                try statement.execute(arguments: [
                    "campaign": mark.campaign, "hash": mark.scheduleHash, "since": mark.since.milliseconds,
                ])
            }
        }
    }

    package func advanceScheduleMarks(of campaigns: [String], to moment: Timestamp) async throws {
        guard !campaigns.isEmpty else { return }
        try await write { db in
            let statement = try db.cachedStatement(
                sql: "UPDATE schedule_mark SET since = max(since, :moment) WHERE campaign = :campaign")
            for campaign in campaigns {
                try statement.execute(arguments: ["campaign": campaign, "moment": moment.milliseconds])
            }
        }
    }

    package func removeScheduleMarks(of campaigns: [String]) async throws {
        guard !campaigns.isEmpty else { return }
        try await write { db in
            let statement = try db.cachedStatement(sql: "DELETE FROM schedule_mark WHERE campaign = :campaign")
            for campaign in campaigns { try statement.execute(arguments: ["campaign": campaign]) }
        }
    }

    // MARK: feeds

    /// Items of a feed that are remembered; the oldest are forgotten beyond that.
    package static let feedItemsMax = 20_000

    package func feedState(campaign: String) async throws -> FeedState? {
        try await read(.short) { db in try Self.feedState(campaign, db) }
    }

    package func seenFeedItems(campaign: String, among keys: [String]) async throws -> Set<String> {
        try await read(.short) { db in
            let statement = try db.cachedStatement(
                sql: "SELECT 1 FROM feed_item WHERE campaign = :campaign AND item = :item")
            return Set(
                try keys.filter { key in
                    try Row.fetchOne(statement, arguments: ["campaign": campaign, "item": key]) != nil
                })
        }
    }

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
