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
}
