import GRDB
package import Model
package import Store

/// Who did what, when.
enum EventLog {
    /// - Parameter number: of the event; `nil`: the next one.
    /// - Returns: its number.
    @discardableResult
    static func record(
        _ db: Database, number: Int64? = nil, kind: EventKind, run: Int64?, actor: Actor, detail: String,
        files: [String: String] = [:], now: Timestamp
    ) throws -> Int64 {
        try db.execute(
            sql: """
                INSERT INTO event (id, at, kind, run_id, actor, detail, files, uid, user, command, origin)
                VALUES (
                    :number, :now, :kind, :run, :actor, :detail, :files, :uid, :user, :command, :origin
                )
                """,
            arguments: [
                "number": number, "now": now.milliseconds, "kind": kind.rawValue, "run": run, "actor": actor.name,
                "detail": detail,
                "files": files.isEmpty ? nil : try StoredJSON.text(files), "uid": actor.account?.uid,
                "user": actor.account?.user ?? actor.signedInAs,
                "command": actor.command, "origin": actor.origin.rawValue,
            ])
        let event = db.lastInsertedRowID
        try EventChain(db).append(event)
        return event
    }
}

extension SQLiteFileStore {
    package func recordEvent(
        kind: EventKind, run: Int64?, actor: Actor, detail: String, files: [String: String], now: Timestamp
    ) async throws {
        _ = try await write { db in
            try EventLog.record(db, kind: kind, run: run, actor: actor, detail: detail, files: files, now: now)
        }
    }

    package func events(run: Int64?, since: Timestamp?, limit: Int) async throws -> [StoreEvent] {
        try await read(.short) { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT \(Self.eventColumns) FROM event LEFT JOIN run ON run.id = event.run_id
                    WHERE (:run IS NULL OR event.run_id = :run) AND (:since IS NULL OR event.at >= :since)
                    ORDER BY event.id DESC LIMIT :limit
                    """, arguments: ["run": run, "since": since?.milliseconds, "limit": limit]
            ).map(Self.event).reversed()
        }
    }

    /// As ``event(_:)`` reads them.
    static let eventColumns = """
        event.at, event.kind, event.run_id, run.campaign, event.actor, event.detail, event.files, event.uid, event.user,
        event.command, event.origin
        """

    static func event(_ row: Row) throws -> StoreEvent {
        StoreEvent(
            at: Timestamp(milliseconds: row[0]), kind: row[1], run: row[2], campaign: row[3], actor: actor(row),
            detail: row[5], files: ReadableRows.value(row[6], otherwise: [:]))
    }

    private static func actor(_ row: Row) -> Actor {
        Actor(
            row[4], uid: row[7], user: row[8], origin: (row[10] as String?).flatMap(Actor.Origin.init) ?? .command,
            command: row[9])
    }
}
