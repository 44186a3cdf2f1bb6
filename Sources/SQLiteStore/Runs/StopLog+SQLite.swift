import Foundation
import GRDB
package import Model
package import Store

extension SQLiteFileStore {
    package func stops() async throws -> StopOrders { try await read(.short) { db in try StopRecord.read(db) } }

    package func recordStop(_ order: StopOrder, by actor: Actor, now: Timestamp) async throws -> StopRecording {
        if order.scope.isOfOneRun { return .ofRun }
        return try await writeDurably(patience: .ofSenders) { db in
            guard try !StopRecord.lifted(db).contains(where: order.isSame) else { return .lifted }
            var stops = try StopRecord.read(db)
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
        try await writeDurably { db in
            var stops = try StopRecord.read(db)
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
    static func read(_ db: Database) throws -> StopOrders { try value(StopRecordKey.stops, db) ?? StopOrders() }

    static func lifted(_ db: Database) throws -> [StopOrder] { try value(StopRecordKey.lifted, db) ?? [] }

    static func remember(lifted orders: [StopOrder], _ db: Database) throws {
        guard !orders.isEmpty else { return }
        try MoveMarks.set(
            StopRecordKey.lifted, (try lifted(db) + orders).suffix(StopRecordKey.liftedMax), db)
    }

    private static func value<Value: Decodable>(_ key: String, _ db: Database) throws -> Value? {
        let bytes = try Data.fetchOne(
            db.cachedStatement(sql: "SELECT value FROM meta WHERE key = :key"), arguments: ["key": key])
        return try bytes.map { try StoredJSON.value(String(decoding: $0, as: UTF8.self)) }
    }

    /// What keeps a run from being sent; nil: nothing does.
    static func order(_ db: Database, run: Int64) throws -> StopOrder? {
        let stops = try read(db)
        return stops.isEmpty ? nil : try stops.order(run: run, campaign: RunRow.require(db, run).campaign)
    }

    static func write(_ stops: StopOrders, _ db: Database) throws {
        if stops.isEmpty {
            try MoveMarks.remove(StopRecordKey.stops, db)
        } else {
            try MoveMarks.set(StopRecordKey.stops, stops, db)
        }
    }
}
