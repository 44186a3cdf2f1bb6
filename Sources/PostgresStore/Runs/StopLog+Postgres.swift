package import Model
package import Store

extension PostgresDatabase {
    package func recordStop(_ order: StopOrder, by actor: Actor, now: Timestamp) async throws -> StopRecording {
        if order.scope.isOfOneRun { return .ofRun }
        return try await write(.durable) { db in
            var stops = try StopRecord.locked(db)
            guard try !StopRecord.lifted(db).contains(where: order.isSame) else { return .lifted }
            guard stops.put(order) else { return .known }
            try StopRecord.write(stops, db)
            try EventLog.record(
                db, kind: .sendingStopped, run: nil, actor: actor, detail: order.recorded, now: now)
            return .recorded
        }
    }

    package func liftStop(
        _ scope: StopOrder.Scope, inFile file: StopOrder?, reason: String, by actor: Actor, now: Timestamp
    ) async throws -> StopOrder? {
        try await write(.durable) { db in
            var stops = try StopRecord.locked(db)
            let order = stops.lift(scope)
            try StopRecord.remember(lifted: [order, file].compactMap(\.self), db)
            guard let order else { return nil }
            try StopRecord.write(stops, db)
            try EventLog.record(
                db, kind: .stopLifted, run: nil, actor: actor, detail: order.lifted(reason: reason), now: now)
            return order
        }
    }
}

/// The stops in force, among the facts of the store; no row while there are none.
enum StopRecord {
    static func read(_ db: PostgresSession) throws -> StopOrders {
        try value(StopRecordKey.stops, db) ?? StopOrders()
    }

    static func lifted(_ db: PostgresSession) throws -> [StopOrder] { try value(StopRecordKey.lifted, db) ?? [] }

    static func remember(lifted orders: [StopOrder], _ db: PostgresSession) throws {
        guard !orders.isEmpty else { return }
        try MoveMarks.set(
            StopRecordKey.lifted, (try lifted(db) + orders).suffix(StopRecordKey.liftedMax), db)
    }

    private static func value<Value: Decodable>(_ key: String, _ db: PostgresSession) throws -> Value? {
        try db.first("SELECT value FROM meta WHERE key = $1", key) { try $0.bytes(0) }
            .map { try StoredJSON.value(String(decoding: $0, as: UTF8.self)) }
    }

    /// Nobody else changes them until the transaction ends. The lock is that of a row which is always there: theirs may not be.
    static func locked(_ db: PostgresSession) throws -> StopOrders {
        try db.execute("SELECT 1 FROM meta WHERE key = 'namespace' FOR NO KEY UPDATE")
        return try read(db)
    }

    /// What keeps a run from being sent; nil: nothing does.
    static func order(_ db: PostgresSession, run: Int64) throws -> StopOrder? {
        let stops = try read(db)
        return stops.isEmpty ? nil : try stops.order(run: run, campaign: RunRow.require(db, run).campaign)
    }

    static func write(_ stops: StopOrders, _ db: PostgresSession) throws {
        if stops.isEmpty {
            try MoveMarks.remove(StopRecordKey.stops, db)
        } else {
            try MoveMarks.set(StopRecordKey.stops, stops, db)
        }
    }
}
