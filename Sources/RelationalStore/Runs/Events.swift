package import Model
package import Store

extension RelationalStore {
    package func recordEvent(
        kind: EventKind, run: Int64?, actor: Actor, detail: String, files: [String: String], now: Timestamp
    ) async throws {
        try await transaction(.quick) { db in
            _ = try db.record(kind, run: run, by: actor, detail, files: files, now: now)
        }
    }

    package func events(run: Int64?, since: Timestamp?, limit: Int) async throws -> [StoreEvent] {
        let filter = EventFilter(run: run, since: since)
        return try await snapshot(.short) { db in
            try EventRow.page(filter, before: nil, limit: limit, db).events.reversed()
        }
    }

    package func events(_ filter: EventFilter, before id: Int64?, limit: Int) async throws -> EventPage {
        try await snapshot(.expensive) { db in try EventRow.page(filter, before: id, limit: limit, db) }
    }
}

/// Reads rows of `event`; each store's event chain writes them.
private enum EventRow {
    private static let columns = """
        event.id, event.at, event.kind, event.run_id, run.campaign, event.detail, event.files, event.actor, event.uid,
        event."user", event.command, event.origin
        """

    /// Returns a page of events, latest first.
    static func page(
        _ filter: EventFilter, before id: Int64?, limit: Int, _ db: some SQLSession
    ) throws -> EventPage {
        var conditions = ["event.id < $1"]
        var values: [any SQLValue] = [id ?? .max, limit]
        func add(_ condition: String, _ value: (any SQLValue)?) {
            guard let value else { return }
            values.append(value)
            conditions.append("event.\(condition) $\(values.count)")
        }
        add("run_id =", filter.run)
        add("actor =", filter.actor)
        add("kind =", filter.kind)
        add("at >=", filter.since)
        let rows = try db.all(
            """
            SELECT \(columns) FROM event LEFT JOIN run ON run.id = event.run_id
            WHERE \(conditions.joined(separator: " AND ")) ORDER BY event.id DESC LIMIT $2
            """, values: values
        ) { try event($0) }
        return EventPage(events: rows, next: rows.count == limit ? rows.last?.id : nil)
    }

    private static func event(_ row: some SQLFields) throws -> StoreEvent {
        let actor = Actor(
            try row.text(7), uid: try row.int64OrNil(8), user: try row.textOrNil(9),
            origin: try row.textOrNil(11).flatMap(Actor.Origin.init) ?? .command, command: try row.textOrNil(10))
        return StoreEvent(
            id: try row.int64(0), at: try row.timestamp(1), kind: try row.text(2), run: try row.int64OrNil(3),
            campaign: try row.textOrNil(4), actor: actor, detail: try row.text(5),
            files: ReadableRows.value(try row.textOrNil(6), otherwise: [:]))
    }
}
