package import Model
import RelationalStore
package import Store

extension PostgresDatabase {
    package func departure() async throws -> StoreMove? { try await read(.short) { try MoveMarks.departure($0) } }

    package func arrival() async throws -> StoreArrival? { try await read(.short) { try MoveMarks.arrival($0) } }

    package func isEmpty() async throws -> Bool {
        try await read(.short) { db in
            try TransferTable.all.allSatisfy { table in
                try db.first(.once("SELECT 1 FROM \"\(table.name)\" LIMIT 1")) { try $0.int(0) } == nil
            }
        }
    }

    package func beginDeparture(_ move: StoreMove, by actor: Actor) async throws {
        let path = path
        try await write(.durable.within(.seconds(600))) { db in
            if try Self.continues(move, db, path) { return }
            let fence = MoveFence(db)
            try fence.lock()
            // Another move may have begun while this one waited for the lock.
            if try Self.continues(move, db, path) { return }
            try Self.requireUnused(db, path)
            if let fault = try EventChain.faults(db).faults.first {
                throw StoreError.corrupt(path: path, reason: "\(fault.what); see `fanfare verify`")
            }
            try EventLog.record(
                db, kind: .storeMoved, run: nil, actor: actor, detail: "to \(move.to)", now: move.begunAt)
            try StoredFact.set(MoveRecord.departure, move, db)
            try fence.close(for: move)
        }
    }

    /// Returns whether this move is already recorded. If it has not ended, records the process that continues it.
    private static func continues(_ move: StoreMove, _ db: PostgresSession, _ path: String) throws -> Bool {
        guard let known = try MoveMarks.departure(db, isLocked: true) else { return false }
        guard known.id == move.id else { throw known.refusal(at: path) }
        if known.endedAt == nil { try StoredFact.set(MoveRecord.departure, move, db) }
        return true
    }

    private static func requireUnused(_ db: PostgresSession, _ path: String) throws {
        let leased = try db.first("SELECT run_id FROM lease LIMIT 1") { try $0.int64(0) }
        if let leased { throw StoreError.inUse(path: path, reason: "run \(leased) has deliveries in flight") }
        let owned = try db.first("SELECT id, owner FROM run WHERE owner IS NOT NULL LIMIT 1") {
            (try $0.int64(0), try $0.text(1))
        }
        if let owned { throw StoreError.inUse(path: path, reason: "\(owned.1) has run \(owned.0)") }
    }

    package func endDeparture(_ move: StoreMove, at now: Timestamp) async throws {
        let path = path
        try await write(.durable) { db in
            let recorded = try MoveMarks.departure(db, isLocked: true)
            try move.requireOnRecord(recorded, at: path)
            guard var ended = recorded, ended.endedAt == nil else { return }
            ended.endedAt = now
            try StoredFact.set(MoveRecord.departure, ended, db)
            try MoveFence(db).close(for: ended)
        }
    }

    package func giveUpDeparture(_ move: StoreMove) async throws {
        let path = path
        try await write(.durable) { db in
            guard let known = try MoveMarks.departure(db, isLocked: true) else { return }
            guard known.endedAt == nil else { throw known.refusal(at: path) }
            guard known == move else { throw StoreError.busy(path: path) }
            try StoredFact.remove(MoveRecord.departure, db)
            try MoveFence(db).open()
        }
    }

    package func beginArrival(_ move: StoreMove, namespace: (high: UInt64, low: UInt64)) async throws {
        let path = path
        try await write(.durable) { db in
            if let known = try MoveMarks.arrival(db) {
                guard known.move.id == move.id else { throw StoreError.busy(path: path) }
                return
            }
            let bytes = [namespace.high, namespace.low].flatMap { half in
                withUnsafeBytes(of: half.bigEndian) { Array($0) }
            }
            try db.execute("UPDATE meta SET value = $1 WHERE key = 'namespace'", bytes)
            try StoredFact.set(MoveRecord.arrival, StoreArrival(move), db)
        }
    }

    package func rows(
        of table: TransferTable, after key: [TransferValue]?, limit: Int
    ) async throws -> [[TransferValue]] {
        guard table == .delivery else {
            return try await read { db in
                try TransferRows(db, table).read(after: key, limit: limit)
            }
        }
        return try await deliveries(after: key, limit: limit)
    }

    /// Reads the partitions of a limited number of runs per transaction, because each partition stays locked until
    /// the transaction ends.
    private func deliveries(after key: [TransferValue]?, limit: Int) async throws -> [[TransferValue]] {
        let (first, device) = (key?.first?.integer ?? 0, key?.last?.integer ?? 0)
        let runs = try await read { db in
            try db.all("SELECT id FROM run WHERE id >= $1 AND outcomes_pruned_at IS NULL ORDER BY id", first) {
                try $0.int64(0)
            }
        }
        let partsMax = TransferTable.delivery.partsMax ?? 1
        for start in stride(from: 0, to: runs.count, by: partsMax) {
            let part = runs[start..<min(start + partsMax, runs.count)]
            let rows = try await read { db in
                var rows: [[TransferValue]] = []
                for run in part where rows.count < limit {
                    rows += try TransferRows(db, .delivery).readDeliveries(
                        of: run, after: run == first ? device : 0, limit: limit - rows.count)
                }
                return rows
            }
            if !rows.isEmpty { return rows }
        }
        return []
    }

    package func write(
        _ rows: ArraySlice<[TransferValue]>, from: TransferProgress, to: TransferProgress
    ) async throws {
        let path = path
        try await write(.quick.within(.seconds(600))) { db in
            guard var arrival = try MoveMarks.arrival(db, isLocked: true), arrival.progress != to else { return }
            guard arrival.progress == from else { throw StoreError.busy(path: path) }
            arrival.progress = to
            try StoredFact.set(MoveRecord.arrival, arrival, db)
            guard let table = from.current, !rows.isEmpty else { return }
            try TransferRows(db, table).write(rows, path: path)
        }
    }

    package func highestNumbers() async throws -> [String: Int64] {
        try await read(.short) { try GivenNumbers.highest($0) }
    }

    package func endArrival(
        _ numbers: [String: Int64], proofs: [TableProof], stops: StopOrders, gap: RestoreGap?, at now: Timestamp
    ) async throws {
        guard let arrival = try await arrival(), arrival.move.endedAt == nil else { return }
        try await readyRuns()
        // Outside a transaction, the user's own statement timeout would apply.
        try await write(.quick.within(.seconds(3600))) { db in try db.run("ANALYZE") }
        try await write(.durable.within(.seconds(600))) { db in
            guard var arrival = try MoveMarks.arrival(db, isLocked: true), arrival.move.endedAt == nil else { return }
            try db.execute(
                "INSERT INTO silent_slot (device_id) SELECT DISTINCT device_id FROM silent_ledger ON CONFLICT DO NOTHING"
            )
            try GivenNumbers.set(numbers, db)
            arrival.move.endedAt = now
            arrival.proofs = proofs
            try StopRecord.write(stops, db)
            if let gap { try StoredFact.set(RestoreGap.key, gap, db) }
            try StoredFact.set(MoveRecord.arrived, arrival, db)
            try StoredFact.remove(MoveRecord.arrival, db)
        }
    }

    /// Prepares each run in a separate transaction. Open runs get chunks of the deliveries that were never put off.
    /// Ended runs get the index of failed deliveries.
    private func readyRuns() async throws {
        let runs = try await read(.short) { db in
            try db.all("SELECT id, state FROM run WHERE outcomes_pruned_at IS NULL ORDER BY id") {
                (try $0.int64(0), RunState(rawValue: try $0.text(1)))
            }
        }
        for (run, state) in runs {
            try await write(.quick.within(.seconds(3600))) { db in
                if state?.isFinal == true { return try DeliveryTable(run: run).indexFailed(db) }
                try TransferRows.cutChunks(of: run, db)
            }
        }
    }
}

/// The stored facts about moves of this store.
enum MoveMarks {
    /// - Parameter isLocked: whether to lock the record against other transactions until this one ends.
    static func departure(_ db: PostgresSession, isLocked: Bool = false) throws -> StoreMove? {
        if isLocked { try db.execute("SELECT 1 FROM meta WHERE key = $1 FOR UPDATE", MoveRecord.departure) }
        return try StoredFact.value(MoveRecord.departure, db)
    }

    /// - Parameter isLocked: whether to lock the record against other transactions until this one ends.
    static func arrival(_ db: PostgresSession, isLocked: Bool = false) throws -> StoreArrival? {
        if isLocked { try db.execute("SELECT 1 FROM meta WHERE key = $1 FOR UPDATE", MoveRecord.arrival) }
        return try StoredFact.value(MoveRecord.arrival, db) ?? StoredFact.value(MoveRecord.arrived, db)
    }

    /// Throws if the store must not be used. A store that was moved away may still be read.
    static func requireUsable(_ db: PostgresSession, isReading: Bool, path: String) throws {
        if let arrival: StoreArrival = try StoredFact.value(MoveRecord.arrival, db) {
            throw StoreError.arriving(path: path, from: arrival.move.from)
        }
        if !isReading, let move = try departure(db) { throw move.refusal(at: path) }
    }
}

/// Prevents all processes from writing to a store that is moved away. A process may have opened the store before the
/// move, so only the server can stop it. Deliveries need no fence: a transaction that changes them also changes
/// their run.
private struct MoveFence {
    private static let lockTimeout = "SET LOCAL lock_timeout = '10s'"
    private static let tables =
        TransferTable.all.filter { $0 != .delivery }.map(\.name)
        + ["lease", "run_sender", "daemon", "chunk", "sender", "endpoint_hold", "waiting_feedback", "waiting_merge"]

    private let db: PostgresSession

    init(_ db: PostgresSession) { self.db = db }

    /// Waits for current writers, and blocks other writers until the transaction ends.
    func lock() throws {
        try db.run(
            "\(Self.lockTimeout); LOCK TABLE \(Self.tables.joined(separator: ", ")) IN SHARE ROW EXCLUSIVE MODE")
    }

    func close(for move: StoreMove) throws {
        let message = "\(move.refusal(at: "this database"))"
        // The server quotes the text, because people write the addresses.
        let text = try db.first("SELECT quote_literal($1)", message) { try $0.text(0) } ?? "''"
        try db.run(
            """
            CREATE OR REPLACE FUNCTION fanfare_refuse() RETURNS trigger LANGUAGE plpgsql AS $refuse$
            BEGIN RAISE EXCEPTION USING ERRCODE = '25006', MESSAGE = \(text); END $refuse$
            """)
        for table in Self.tables {
            try db.run(
                """
                CREATE OR REPLACE TRIGGER fanfare_moved BEFORE INSERT OR UPDATE OR DELETE ON \(table)
                    FOR EACH STATEMENT EXECUTE FUNCTION fanfare_refuse()
                """)
        }
    }

    func open() throws {
        try db.run("\(Self.lockTimeout); DROP FUNCTION IF EXISTS fanfare_refuse() CASCADE")
    }
}
