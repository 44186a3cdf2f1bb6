package import Model
package import Store

extension RelationalStore {
    package func scheduleMarks() async throws -> [String: ScheduleMark] {
        let marks = try await snapshot(.short) { db in
            try db.all("SELECT campaign, schedule_hash, since FROM schedule_mark") { row in
                ScheduleMark(campaign: try row.text(0), scheduleHash: try row.int64(1), since: try row.timestamp(2))
            }
        }
        return Dictionary(marks.map { ($0.campaign, $0) }) { _, last in last }
    }

    package func setScheduleMarks(_ marks: [ScheduleMark]) async throws {
        guard !marks.isEmpty else { return }
        let marks = marks.sorted { $0.campaign < $1.campaign }
        try await transaction(.quick) { db in
            try db.execute(
                """
                INSERT INTO schedule_mark (campaign, schedule_hash, since) VALUES ($1, $2, $3)
                ON CONFLICT (campaign) DO UPDATE SET
                    since = CASE
                        WHEN schedule_mark.schedule_hash = excluded.schedule_hash
                        THEN \(Session.dialect.least)(schedule_mark.since, excluded.since)
                        ELSE excluded.since
                    END,
                    schedule_hash = excluded.schedule_hash
                """, each: marks.map { [$0.campaign, $0.scheduleHash, $0.since] })
        }
    }

    package func advanceScheduleMarks(of campaigns: [String], to moment: Timestamp) async throws {
        guard !campaigns.isEmpty else { return }
        try await transaction(.quick) { db in
            try db.execute(
                """
                UPDATE schedule_mark SET since = \(Session.dialect.greatest)(since, $2)
                WHERE campaign \(Session.dialect.isAny(1))
                """, campaigns, moment)
        }
    }

    package func removeScheduleMarks(of campaigns: [String]) async throws {
        guard !campaigns.isEmpty else { return }
        try await transaction(.quick) { db in
            try db.execute("DELETE FROM schedule_mark WHERE campaign \(Session.dialect.isAny(1))", campaigns)
        }
    }
}
