import GRDB
package import Store
package import Model

extension SQLiteFileStore {
    package func scheduleMarks() async throws -> [String: ScheduleMark] {
        try await read { db in
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

    /// Two processes may set the same mark: the earlier time stays, so that nothing in between is lost.
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

    /// Everything these campaigns had to start up to a moment has its run: nobody needs to look at it again.
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

    /// Forgets campaigns whose files are gone: one that comes back begins anew.
    package func removeScheduleMarks(of campaigns: [String]) async throws {
        guard !campaigns.isEmpty else { return }
        try await write { db in
            let statement = try db.cachedStatement(sql: "DELETE FROM schedule_mark WHERE campaign = :campaign")
            for campaign in campaigns { try statement.execute(arguments: ["campaign": campaign]) }
        }
    }

    /// Which of these occurrences have a run, whatever became of it.
    package func knownOccurrences(of campaign: String, among keys: [String]) async throws -> Set<String> {
        guard !keys.isEmpty else { return [] }
        return try await read { db in
            let statement = try db.cachedStatement(
                sql: "SELECT 1 FROM run WHERE campaign = :campaign AND occurrence = :occurrence")
            return try Set(
                keys.filter { key in
                    try Row.fetchOne(statement, arguments: ["campaign": campaign, "occurrence": key]) != nil
                })
        }
    }

    /// Runs that somebody should carry out now: created or going on, and in nobody's hands. Test runs are left to whoever
    /// made them.
    ///
    /// - Parameter owner: whoever asks; what it has in hand is left out.
    package func openRuns(now: Timestamp, staleAfter: Duration, except owner: String) async throws -> [Run] {
        let hasEnded = hasEnded
        return try await read { db in
            let rows = try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT id, owner FROM run
                        WHERE state IN ('scheduled', 'running') AND is_test = 0
                            AND (owner IS NULL OR owner <> :owner OR heartbeat_at <= :stale)
                        ORDER BY id
                        """), arguments: ["owner": owner, "stale": (now - staleAfter).milliseconds])
            return try rows.compactMap { row in
                let run = try RunRow.require(db, row[0])
                guard let holder: String = row[1], holder != owner, let heartbeat = run.heartbeatAt else { return run }
                return now >= heartbeat + staleAfter || hasEnded(holder) ? run : nil
            }
        }
    }
}
