import GRDB
import Store

/// Reads the rows of one table for another store, or writes rows that come from one.
struct TransferRows {
    private let db: Database
    private let table: TransferTable

    init(_ db: Database, _ table: TransferTable) {
        self.db = db
        self.table = table
    }

    func read(after key: [TransferValue]?, limit: Int) throws -> [[TransferValue]] {
        let statement = try RowStatement(db, select(isFirst: key == nil))
        defer { statement.reset() }
        for (index, value) in (key ?? []).enumerated() { try bind(value, Int32(index + 1), statement) }
        try statement.bind(Int64(limit), Int32((key?.count ?? 0) + 1))
        var objects = TransferObjects()
        var rows: [[TransferValue]] = []
        while try statement.step() {
            rows.append(
                try table.columns.enumerated().map { index, column in
                    try Self.value(statement, Int32(index), column.kind, &objects)
                })
        }
        return rows
    }

    private static func value(
        _ statement: RowStatement, _ column: Int32, _ kind: TransferTable.Kind, _ objects: inout TransferObjects
    ) throws -> TransferValue {
        if statement.isNull(column) { return .null }
        return switch kind {
        case .integer, .boolean: .integer(statement.int64(column))
        case .text: .text(statement.text(column))
        case .bytes: .bytes(statement.bytes(column))
        case .object: .text(try statement.text(column).map { try objects.canonical($0) })
        }
    }

    func insert(_ rows: ArraySlice<[TransferValue]>) throws {
        guard !rows.isEmpty else { return }
        let statement = try RowStatement(db, insert)
        for row in rows {
            for (index, value) in row.enumerated() { try bind(value, Int32(index + 1), statement) }
            try statement.run()
        }
    }

    private func bind(_ value: TransferValue, _ parameter: Int32, _ statement: RowStatement) throws {
        switch value {
        case .null: try statement.bindNull(parameter)
        case .integer(let number): try statement.bind(number, parameter)
        case .text(let text): try statement.bind(text, parameter)
        case .bytes(let bytes): try statement.bind(bytes, parameter)
        }
    }

    /// Returns a query that reads rows in order of the key, written so that the planner takes no other path.
    private func select(isFirst: Bool) -> String {
        let key = names(table.key)
        let marks = Array(repeating: "?", count: table.keyColumns).joined(separator: ", ")
        let behind = isFirst ? [] : ["(\(key)) > (\(marks))"]
        let unpruned =
            table == .delivery ? ["+run_id IN (SELECT id FROM run WHERE outcomes_pruned_at IS NULL)"] : []
        let conditions = behind + unpruned
        return """
            SELECT \(names(table.columns[...])) FROM \(table.name.quotedDatabaseIdentifier)
            \(conditions.isEmpty ? "" : "WHERE " + conditions.joined(separator: " AND "))
            ORDER BY \(key) LIMIT ?
            """
    }

    private var insert: String {
        let marks = Array(repeating: "?", count: table.columns.count).joined(separator: ", ")
        return """
            INSERT INTO \(table.name.quotedDatabaseIdentifier) (\(names(table.columns[...]))) VALUES (\(marks))
            """
    }

    private func names(_ columns: ArraySlice<TransferTable.Column>) -> String {
        columns.map(\.name.quotedDatabaseIdentifier).joined(separator: ", ")
    }
}
