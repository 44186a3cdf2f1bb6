import Model
package import Store

extension PostgresDatabase {
    /// Connects to the database and opens its store. Refuses a database of another program, or a store of a newer
    /// version, and leaves it unchanged. An older store is migrated, and an empty database becomes a store, if
    /// `access` allows it.
    ///
    /// - Parameters:
    ///   - takeoverAfter: see ``SenderLog/takeoverAfter``. If `nil`, `isAlive` alone decides which senders are
    ///     alive.
    ///   - isAlive: returns whether an owner may be alive. Transactions call it, so it must return immediately. By
    ///     default, every owner may be alive.
    ///   - time: the clock of the store's times.
    ///
    /// Throws ``PostgresAddressFault``, ``StoreOpeningFault`` or ``PostgresError``, whose descriptions are one line
    /// each. Throws ``StoreError`` if the store has moved or is moving elsewhere, or has not completely arrived.
    package static func open(
        url: String, access: StoreAccess = .making, takeoverAfter: Duration? = nil,
        isAlive: @escaping OwnerLiveness.IsAlive = { _ in true }, time: StoreTime = .database
    ) async throws -> PostgresDatabase {
        let pool = PostgresPool(try PostgresAddress(url), writers: writersMax, time: time)
        do {
            let (namespace, departed) = try await pool.session(limit: openingTime) { db in
                let server = db.server
                let facts = try StoreFacts(db, isReading: access == .reading)
                try facts.require(access, server: server)
                if access != .reading, facts.version != Schema.version { try Schema.migrate(db) }
                if !access.isForMove {
                    try MoveMarks.requireUsable(db, isReading: access == .reading, path: server)
                }
                return (try Schema.namespace(db), try MoveMarks.departure(db))
            }
            let store = PostgresDatabase(
                pool, namespace: namespace, departed: departed, takeoverAfter: takeoverAfter, isAlive: isAlive)
            if takeoverAfter != nil { try await store.readClock() }
            return store
        } catch {
            await pool.close()
            throw error
        }
    }

    /// The time limit for opening a store. A migration may rewrite a table with millions of rows.
    private static let openingTime: Duration = .seconds(3600)
}

extension StoreFacts {
    /// Throws unless the database is a store of a known version, or may become one.
    fileprivate func require(_ access: StoreAccess, server: String) throws(StoreOpeningFault) {
        guard let schema else { throw .noSchema(server: server) }
        guard forbidden.isEmpty else { throw .mayNotUse(server: server, tables: forbidden) }
        guard tables.isEmpty else { throw .otherProgram(server: server, tables: tables) }
        let known = Schema.version
        if let version, version > known { throw .newerVersion(server: server, found: version, known: known) }
        if access == .reading {
            guard let version else { throw .noStore(server: server) }
            guard version == known else { throw .olderVersion(server: server, found: version, known: known) }
            return
        }
        guard !isReplica, !isReadOnly else { throw .readOnly(server: server, isReplica: isReplica) }
        guard version == nil else { return }
        guard access.makes else { throw .noStore(server: server) }
        guard encoding == "UTF8" else { throw .encoding(server: server, found: encoding) }
        guard mayCreate else { throw .mayNotCreate(server: server, schema: schema) }
    }
}
