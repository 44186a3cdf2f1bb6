package import Model
package import Store

/// The rules for the content of a restored backup, the same for a copied file and for a dump of a server.
package enum RestoredContent {
    /// Makes the content of a backup safe to use as the store. Every unfinished run waits until a person has confirmed
    /// the gap. Occurrences and feed items of the gap do not start automatically.
    package static func adopt<Session: SQLSession>(
        _ gap: RestoreGap, by actor: Actor, _ db: Session
    ) throws -> RestoredStore {
        let now = gap.restoredAt
        let unfinished = "WHERE state IN (\(SQLConstants.list(RunState.unfinished))) ORDER BY id"
        for run in try db.all("SELECT id FROM run \(unfinished)", read: { try $0.int64(0) }) {
            _ = try RunOwner.alone(db, run)
        }
        let open = try RunRow.list(db, unfinished).readable
        try endSessions(db, now: now)
        let tokens = try db.all(
            """
            SELECT name FROM access_token WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1)
            ORDER BY \(Session.dialect.bytes("name"))
            """, now
        ) { try $0.text(0) }
        var restored = RestoredStore(madeAt: gap.madeAt, restoredAt: now, runs: open, tokens: tokens)
        try StoredFact.set(RestoreGap.key, gap, db)
        try db.skipNumbers(of: gap)
        try db.execute("UPDATE schedule_mark SET since = \(Session.dialect.greatest)(since, $1)", now)
        // Treat the next poll of each feed as its first one, so that the items in the feed start no run.
        try db.execute(
            "UPDATE feed SET is_read = \(Session.dialect.word("0", "false")), etag = NULL, last_modified = NULL")
        try db.execute(
            "UPDATE approval SET state = $1 WHERE state = $2", ApprovalRequest.State.lapsed.rawValue,
            ApprovalRequest.State.open.rawValue)
        // Record this before the events of the pauses, so that the ids of those events are also above the ids of the
        // gap.
        let lastEvent = try db.first("SELECT coalesce(max(id), 0) FROM event") { try $0.int64(0) } ?? 0
        try db.record(
            restored: restored.summary, number: lastEvent + gap.leap(of: "event"), by: actor, now: now)
        for run in open { try RunStateChange(db, run.id, now: now).hold(run, RestorePolicy(gap), by: actor) }
        restored.runs = try open.map { try RunRow.require(db, $0.id) }
        return restored
    }

    /// Ends all sessions, sign-in links and invitations, because one that was ended or used in the lost time must not
    /// work again. People can sign in again, and admins can invite again; machines use tokens.
    private static func endSessions(_ db: some SQLSession, now: Timestamp) throws {
        try db.execute("DELETE FROM web_session")
        try db.execute(
            """
            UPDATE access_token SET revoked_at = $1
            WHERE revoked_at IS NULL AND (is_invitation OR substr(name, 1, length($2)) = $2)
            """, now, AccessToken.linkPrefix)
    }
}

extension RelationalStore {
    package func markRestored(since madeAt: Timestamp, by actor: Actor, now: Timestamp) async throws -> RestoredStore? {
        try await transaction(.durable) { db in
            try self.requireNoSender(db)
            let known: RestoreGap? = try StoredFact.value(RestoreGap.key, db)
            guard known?.madeAt != madeAt else { return nil }
            let gap = RestoreGap(madeAt: madeAt, restoredAt: try db.moment(now))
            return try RestoredContent.adopt(gap, by: actor, db)
        }
    }
}
