import GRDB
package import Model

extension Store {
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

    /// Puts on record that an occurrence was not carried out, so that nobody does it later: `missed` or `failed`, with
    /// the reason. False when it has a run already; then nothing is changed.
    package func createEndedRun(
        _ definition: RunDefinition, occurrence: String, state: RunState, reason: String, now: Timestamp,
        by actor: String
    ) async throws -> Bool {
        let text = try RunDefinitionText(definition)
        return try await write { db in
            guard
                try RunRow.insert(
                    definition.campaign, text, occurrence: occurrence, isTest: false, now: now, db)
            else { return false }
            try RunEnding(db, db.lastInsertedRowID, now: now).enter(state, reason: reason, actor: actor)
            return true
        }
    }

    /// Runs that somebody should carry out now: created or going on, and in nobody's hands. Test runs are left to whoever
    /// made them.
    package func openRuns(now: Timestamp, staleAfter: Duration) async throws -> [Run] {
        let hasEnded = hasEnded
        return try await read { db in
            try RunRow.fetch(
                db, "WHERE state IN ('scheduled', 'running') AND is_test = 0 ORDER BY id", [:]
            ).filter { run in
                guard let owner = run.owner, let heartbeat = run.heartbeatAt else { return true }
                return now >= heartbeat + staleAfter || hasEnded(owner)
            }
        }
    }
}
