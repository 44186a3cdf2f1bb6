import Foundation
import GRDB
import GRDBSQLite
package import Model
import RelationalStore
package import Store

extension SQLiteFileStore {
    package func departure() async throws -> StoreMove? { try await read(.short) { try MoveMarks.departure($0) } }

    package func arrival() async throws -> StoreArrival? { try await read(.short) { try MoveMarks.arrival($0) } }

    package func isEmpty() async throws -> Bool {
        try await read(.short) { db in
            try TransferTable.all.allSatisfy { table in
                try Int.fetchOne(db, sql: "SELECT 1 FROM \(table.name.quotedDatabaseIdentifier) LIMIT 1") == nil
            }
        }
    }

    package func beginDeparture(_ move: StoreMove, by actor: Actor) async throws {
        let path = path
        try await writeOfMove { db in
            if let known = try MoveMarks.departure(db) {
                guard known.id == move.id else { throw known.refusal(at: path) }
                if known.endedAt == nil { try StoredFact.set(MoveRecord.departure, move, db) }
                return
            }
            try Self.requireUnused(db, path)
            guard let fault = try EventChain(db).faults().faults.first else {
                try EventLog.record(
                    db, kind: .storeMoved, run: nil, actor: actor, detail: "to \(move.to)", now: move.begunAt)
                return try StoredFact.set(MoveRecord.departure, move, db)
            }
            throw StoreError.corrupt(path: path, reason: "\(fault.what); see `fanfare verify`")
        }
    }

    private static func requireUnused(_ db: Database, _ path: String) throws {
        let leased = try Int64.fetchOne(db, sql: "SELECT run_id FROM lease LIMIT 1")
        if let leased { throw StoreError.inUse(path: path, reason: "run \(leased) has deliveries in flight") }
        let owned = try Row.fetchOne(db, sql: "SELECT id, owner FROM run WHERE owner IS NOT NULL LIMIT 1")
        if let owned {
            throw StoreError.inUse(
                path: path, reason: "\(owned[1] as String) has run \(owned[0] as Int64)")
        }
    }

    package func endDeparture(_ move: StoreMove, at now: Timestamp) async throws {
        let path = path
        try await writeDurably(isOfMove: true) { db in
            let recorded = try MoveMarks.departure(db)
            try move.requireOnRecord(recorded, at: path)
            guard var ended = recorded, ended.endedAt == nil else { return }
            ended.endedAt = now
            try StoredFact.set(MoveRecord.departure, ended, db)
        }
    }

    package func giveUpDeparture(_ move: StoreMove) async throws {
        let path = path
        try await writeOfMove { db in
            guard let known = try MoveMarks.departure(db) else { return }
            guard known.endedAt == nil else { throw known.refusal(at: path) }
            guard known == move else { throw StoreError.busy(path: path) }
            try StoredFact.remove(MoveRecord.departure, db)
        }
    }

    package func beginArrival(_ move: StoreMove, namespace: (high: UInt64, low: UInt64)) async throws {
        let path = path
        try await writeOfMove { db in
            if let known = try MoveMarks.arrival(db) {
                guard known.move.id == move.id else { throw StoreError.busy(path: path) }
                return
            }
            let halves = [namespace.high, namespace.low].flatMap { half in
                withUnsafeBytes(of: half.bigEndian) { Array($0) }
            }
            try db.execute(
                sql: "UPDATE meta SET value = :bytes WHERE key = 'namespace'", arguments: ["bytes": Data(halves)])
            try StoredFact.set(MoveRecord.arrival, StoreArrival(move), db)
        }
    }

    package func rows(
        of table: TransferTable, after key: [TransferValue]?, limit: Int
    ) async throws -> [[TransferValue]] {
        try await read { db in try TransferRows(db, table).read(after: key, limit: limit) }
    }

    package func write(
        _ rows: ArraySlice<[TransferValue]>, from: TransferProgress, to: TransferProgress
    ) async throws {
        let path = path
        try await writeOfMove { db in
            guard var arrival = try MoveMarks.arrival(db), arrival.progress != to else { return }
            guard arrival.progress == from else { throw StoreError.busy(path: path) }
            arrival.progress = to
            try StoredFact.set(MoveRecord.arrival, arrival, db)
            guard let table = from.current else { return }
            try TransferRows(db, table).insert(rows)
            guard table == .event else { return }
            for row in rows { try EventChain(db).append(row[0].integer ?? 0) }
        }
    }

    package func highestNumbers() async throws -> [String: Int64] {
        try await read(.short) { db in
            let pairs = try TransferTable.numbered.map { table in
                let given = try Int64.fetchOne(
                    db, sql: "SELECT seq FROM sqlite_sequence WHERE name = :table", arguments: ["table": table])
                let used = try Int64.fetchOne(db, sql: "SELECT max(id) FROM \(table.quotedDatabaseIdentifier)")
                return (table, max(given ?? 0, used ?? 0))
            }
            return Dictionary(uniqueKeysWithValues: pairs)
        }
    }

    package func endArrival(
        _ numbers: [String: Int64], proofs: [TableProof], stops: StopOrders, gap: RestoreGap?, at now: Timestamp
    ) async throws {
        try await writeDurably(isOfMove: true) { db in
            guard var arrival = try MoveMarks.arrival(db), arrival.move.endedAt == nil else { return }
            for (table, number) in numbers where try Self.isCounted(table, db) {
                try db.execute(
                    sql: "DELETE FROM sqlite_sequence WHERE name = :table", arguments: ["table": table])
                try db.execute(
                    sql: "INSERT INTO sqlite_sequence (name, seq) VALUES (:table, :number)",
                    arguments: ["table": table, "number": number])
            }
            arrival.move.endedAt = now
            arrival.proofs = proofs
            try StopRecord.write(stops, db)
            if let gap { try StoredFact.set(RestoreGap.key, gap, db) }
            try StoredFact.set(MoveRecord.arrived, arrival, db)
            try StoredFact.remove(MoveRecord.arrival, db)
        }
    }

    /// Returns whether SQLite records the last id of the table. In another table, a new row gets the id after the
    /// highest stored one.
    private static func isCounted(_ table: String, _ db: Database) throws -> Bool {
        try Bool.fetchOne(
            db,
            sql: "SELECT sql LIKE '%AUTOINCREMENT%' FROM sqlite_schema WHERE type = 'table' AND name = :table",
            arguments: ["table": table]) ?? false
    }

}

/// The stored facts about moves of this store.
enum MoveMarks {
    static func departure(_ db: Database) throws -> StoreMove? {
        try StoredFact.value(MoveRecord.departure, db)
    }

    static func arrival(_ db: Database) throws -> StoreArrival? {
        let db = db
        return try StoredFact.value(MoveRecord.arrival, db) ?? StoredFact.value(MoveRecord.arrived, db)
    }

    /// Throws if the store must not be used. A store that has moved away may still be read.
    static func requireUsable(_ db: Database, isReading: Bool) throws {
        let isMarked = try Bool.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM meta WHERE key IN ('\(MoveRecord.departure)', '\(MoveRecord.arrival)'))
                    """))
        guard isMarked == true else { return }
        let path = sqlite3_db_filename(db.sqliteConnection, "main").map { String(cString: $0) } ?? ""
        if let arrival: StoreArrival = try StoredFact.value(MoveRecord.arrival, db) {
            throw StoreError.arriving(path: path, from: arrival.move.from)
        }
        if !isReading, let move = try departure(db) { throw move.refusal(at: path) }
    }
}
