package import Model
package import Store
import RelationalStore

/// Who did what, when.
enum EventLog {
    /// Returns its number. Until the transaction ends nobody else puts anything on record: to be called late.
    @discardableResult
    static func record(
        _ db: PostgresSession, kind: EventKind, run: Int64?, actor: Actor, detail: String,
        files: [String: String] = [:], now: Timestamp
    ) throws -> Int64 {
        let account = actor.account
        return try EventChain.append(
            db, now, kind.rawValue, run, actor.name, detail, files.isEmpty ? nil : try StoredJSON.text(files),
            account?.uid, account?.user ?? actor.signedInAs, actor.command, actor.origin.rawValue)
    }

    /// As ``event(_:)`` reads them.
    static let columns = """
        event.at, event.kind, event.run_id, run.campaign, event.actor, event.detail, event.files, event.uid,
        event."user", event.command, event.origin, event.id
        """

    static func event(_ row: PostgresRow) throws -> StoreEvent {
        StoreEvent(
            at: try row.timestamp(0), kind: try row.text(1), run: try row.int64OrNil(2), campaign: try row.textOrNil(3),
            actor: try actor(row), detail: try row.text(5),
            files: ReadableRows.value(try row.textOrNil(6), otherwise: [:]))
    }

    private static func actor(_ row: PostgresRow) throws -> Actor {
        Actor(
            try row.text(4), uid: try row.int64OrNil(7), user: try row.textOrNil(8),
            origin: try row.textOrNil(10).flatMap(Actor.Origin.init) ?? .command, command: try row.textOrNil(9))
    }
}

extension PostgresDatabase {
    package func recordEvent(
        kind: EventKind, run: Int64?, actor: Actor, detail: String, files: [String: String], now: Timestamp
    ) async throws {
        try await write(.quick) { db in
            try EventLog.record(db, kind: kind, run: run, actor: actor, detail: detail, files: files, now: now)
        }
    }

    package func events(run: Int64?, since: Timestamp?, limit: Int) async throws -> [StoreEvent] {
        try await read(.short) { db in
            try db.all(
                """
                SELECT \(EventLog.columns) FROM event LEFT JOIN run ON run.id = event.run_id
                WHERE ($1::bigint IS NULL OR event.run_id = $1) AND ($2::bigint IS NULL OR event.at >= $2)
                ORDER BY event.id DESC LIMIT $3
                """, run, since, limit, read: EventLog.event
            ).reversed()
        }
    }
}
