import Model
import Store
import RelationalStore

/// Reads the rows of one table for another store, or writes rows that come from one.
struct TransferRows {
    private static let chunkDeliveries = 1000

    private let db: PostgresSession
    private let table: TransferTable

    init(_ db: PostgresSession, _ table: TransferTable) {
        self.db = db
        self.table = table
    }

    func read(after key: [TransferValue]?, limit: Int) throws -> [[TransferValue]] {
        let names = table.key.map { "\"\($0.name)\"" }.joined(separator: ", ")
        let marks = (1...table.keyColumns).map { "$\($0)" }.joined(separator: ", ")
        return try select(
            """
            FROM "\(table.name)" \(key == nil ? "" : "WHERE (\(names)) > (\(marks))") ORDER BY \(names) LIMIT \(limit)
            """, (key ?? []).map(\.parameter))
    }

    /// Reads deliveries of one run from the run's own table. Returns none if its outcomes were dropped.
    func readDeliveries(of run: Int64, after device: Int64, limit: Int) throws -> [[TransferValue]] {
        let partition = DeliveryTable(run: run)
        guard try partition.isThere(db) else { return [] }
        return try select(
            "FROM \(partition.name) WHERE device_id > $1 ORDER BY device_id LIMIT \(limit)", [device])
    }

    private func select(_ rest: String, _ values: [any PostgresValue]) throws -> [[TransferValue]] {
        let columns = table.columns.map { $0.kind == .object ? "\"\($0.name)\"::text" : "\"\($0.name)\"" }
        var objects = TransferObjects()
        return try db.rows(.once("SELECT \(columns.joined(separator: ", ")) \(rest)"), values: values).map { row in
            try table.columns.enumerated().map { index, column in
                switch column.kind {
                case .integer: .integer(try row.int64OrNil(index))
                case .boolean: .integer(try row.boolOrNil(index).map { $0 ? 1 : 0 })
                case .text: .text(try row.textOrNil(index))
                case .bytes: .bytes(try row.bytesOrNil(index))
                case .object: .text(try row.textOrNil(index).map { try objects.canonical($0) })
                }
            }
        }
    }

    /// - Parameter path: the path of this store, for errors.
    func write(_ rows: ArraySlice<[TransferValue]>, path: String) throws {
        for row in rows { try requireStorable(row, path) }
        guard table != .event else { return try chain(rows) }
        let types = try columnTypes()
        let names = table.columns.map { "\"\($0.name)\"" }.joined(separator: ", ")
        try db.copyIn("COPY \"\(table.name)\" (\(names)) FROM STDIN (FORMAT binary)") { writer in
            for row in rows { try writer.row(of: zip(row, types).map { CopiedValue(value: $0, type: $1) }) }
        }
        guard table == .run, let pruned = table.columns.firstIndex(where: { $0.name == "outcomes_pruned_at" }) else {
            return
        }
        for row in rows where row[pruned] == .null { try DeliveryTable(run: row[0].integer ?? 0).make(db) }
    }

    /// Returns the types of the columns in their order, as the server has them.
    private func columnTypes() throws -> [UInt32] {
        let types = try db.all(
            "SELECT attname::text, atttypid::bigint FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0",
            table.name
        ) { (try $0.text(0), UInt32(try $0.int64(1))) }
        let known = Dictionary(uniqueKeysWithValues: types)
        return try table.columns.map { column in
            guard let type = known[column.name] else {
                throw StoreDamage("the table \(table.name) has no column \(column.name)")
            }
            return type
        }
    }

    /// Appends the events one by one with their numbers, each linked to all earlier events.
    private func chain(_ rows: ArraySlice<[TransferValue]>) throws {
        for row in rows {
            _ = try EventChain.append(
                db, Timestamp(milliseconds: row[1].integer ?? 0), row[2].text ?? "", row[3].integer, row[4].text ?? "",
                row[5].text ?? "", row[6].text, row[7].integer, row[8].text, row[9].text, row[10].text,
                number: row[0].integer)
        }
    }

    private func requireStorable(_ row: [TransferValue], _ path: String) throws {
        for (column, value) in zip(table.columns, row) {
            guard let text = value.text, try Self.hasNUL(text, isObject: column.kind == .object) else { continue }
            let key = zip(table.key, row).map { column, value in
                "\(column.name) \(value.integer.map(String.init) ?? value.text.map(StorableText.without) ?? "")"
            }
            throw StoreError.notStorable(
                path: path, row: "the \(table.name) of \(key.joined(separator: ", "))",
                reason: "its \(column.name) holds a NUL character, which PostgreSQL cannot store; remove the character")
        }
    }

    /// Returns whether the text holds a NUL. In JSON a NUL is an escape. The same characters may also follow an escaped
    /// backslash, so the JSON is decoded.
    private static func hasNUL(_ text: String, isObject: Bool) throws -> Bool {
        guard StorableText.isWhole(text) else { return true }
        guard isObject, text.contains("\\u0000") else { return false }
        let attributes: [String: String] = try StoredJSON.value(text)
        return !attributes.allSatisfy { StorableText.isWhole($0.key) && StorableText.isWhole($0.value) }
    }

    /// Divides pending deliveries that were never put off into chunks, as a freeze does.
    static func cutChunks(of run: Int64, _ db: PostgresSession) throws {
        try db.execute("DELETE FROM chunk WHERE run_id = $1", run)
        try db.execute(
            .once(
                """
                INSERT INTO chunk (run_id, environment, next_device, last_device)
                SELECT $1, environment, min(device_id), max(device_id) FROM (
                    SELECT environment, device_id,
                        (row_number() OVER (PARTITION BY environment ORDER BY device_id) - 1) / \(chunkDeliveries)
                            AS number
                    FROM \(DeliveryTable(run: run).name)
                    WHERE state = \(DeliveryState.pending.code) AND not_before IS NULL
                ) AS fresh GROUP BY environment, number
                """), run)
    }
}

extension TransferValue {
    /// The value of a statement's parameter.
    fileprivate var parameter: any PostgresValue {
        switch self {
        case .null: Int64?.none
        case .integer(let number): number
        case .text(let text): text
        case .bytes(let bytes): bytes
        }
    }
}

/// A value in the binary form of a column's own type, for a COPY.
private struct CopiedValue: PostgresValue {
    /// Unused, because a COPY sends no types.
    static let oid: UInt32 = 0

    let value: TransferValue
    let type: UInt32

    var isNull: Bool { value == .null }

    func encode(to bytes: inout [UInt8]) {
        switch value {
        case .null: break
        case .integer(let number) where type == Bool.oid: (number != 0).encode(to: &bytes)
        // A truncated value is detected when the move is verified.
        case .integer(let number) where type == Int16.oid: Int16(truncatingIfNeeded: number).encode(to: &bytes)
        case .integer(let number) where type == Int32.oid: Int32(truncatingIfNeeded: number).encode(to: &bytes)
        case .integer(let number): number.encode(to: &bytes)
        case .text(let text) where type == JSONText.oid: JSONText(text).encode(to: &bytes)
        case .text(let text): text.encode(to: &bytes)
        case .bytes(let content): content.encode(to: &bytes)
        }
    }
}
