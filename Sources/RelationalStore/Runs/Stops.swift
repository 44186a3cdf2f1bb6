package import Model
package import Store

extension RelationalStore {
    package func stops() async throws -> StopOrders { try await snapshot(.short) { db in try StopRecord.read(db) } }

    package func recordStop(_ order: StopOrder, by actor: Actor, now: Timestamp) async throws -> StopRecording {
        if order.scope.isOfOneRun { return .ofRun }
        return try await transaction(.durableOfSender) { db in
            var stops = try StopRecord.locked(db)
            guard try !StopRecord.lifted(db).contains(where: order.isSame) else { return .lifted }
            guard stops.put(order) else { return .known }
            try StopRecord.write(stops, db)
            try db.record(.sendingStopped, by: actor, order.recorded, now: now)
            return .recorded
        }
    }

    package func liftStop(
        _ scope: StopOrder.Scope, inFile file: StopOrder?, reason: String, by actor: Actor, now: Timestamp
    ) async throws -> StopOrder? {
        try await transaction(.durable) { db in
            var stops = try StopRecord.locked(db)
            let order = stops.lift(scope)
            try StopRecord.remember(lifted: [order, file].compactMap(\.self), db)
            guard let order else { return nil }
            try StopRecord.write(stops, db)
            try db.record(.stopLifted, by: actor, order.lifted(reason: reason), now: now)
            return order
        }
    }
}

/// The stops in force, stored as a ``StoredFact``. While there are none, there may be no row.
package enum StopRecord {
    package static func read(_ db: some SQLSession) throws -> StopOrders {
        try StoredFact.value(StopRecordKey.stops, db) ?? StopOrders()
    }

    static func lifted(_ db: some SQLSession) throws -> [StopOrder] {
        try StoredFact.value(StopRecordKey.lifted, db) ?? []
    }

    static func remember(lifted orders: [StopOrder], _ db: some SQLSession) throws {
        guard !orders.isEmpty else { return }
        try StoredFact.set(
            StopRecordKey.lifted, (try lifted(db) + orders).suffix(StopRecordKey.liftedMax), db)
    }

    /// Returns the stops, and locks them until the transaction ends. It locks a row that always exists, because the row
    /// of the stops may not exist.
    static func locked<Session: SQLSession>(_ db: Session) throws -> StopOrders {
        try db.execute("SELECT 1 FROM meta WHERE key = 'namespace'\(Session.dialect.lock)")
        return try read(db)
    }

    /// Returns the stop that applies to a run; `nil` if none does.
    package static func order(_ db: some SQLSession, run: Int64) throws -> StopOrder? {
        let stops = try read(db)
        guard !stops.isEmpty else { return nil }
        let campaign = try db.first("SELECT campaign FROM run WHERE id = $1", run) { try $0.text(0) }
        guard let campaign else { throw StoreError.noSuchRun(run) }
        return stops.order(run: run, campaign: campaign)
    }

    package static func write(_ stops: StopOrders, _ db: some SQLSession) throws {
        if stops.isEmpty {
            try StoredFact.remove(StopRecordKey.stops, db)
        } else {
            try StoredFact.set(StopRecordKey.stops, stops, db)
        }
    }
}
