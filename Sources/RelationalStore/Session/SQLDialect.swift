/// The differences between the two engines, for statements that otherwise share one text.
///
/// SQLite lets one transaction write at a time, so locks and conflict clauses are empty there.
package enum SQLDialect: Sendable {
    case sqlite, postgres

    /// The suffix of a SELECT that locks the found rows against changes until the transaction ends.
    package var lock: String { word("", " FOR NO KEY UPDATE") }

    /// The suffix of a SELECT that keeps the found rows unchanged until the transaction ends.
    package var share: String { word("", " FOR SHARE") }

    /// The functions for the largest and the smallest of several values. The engines treat NULL differently.
    package var greatest: String { word("max", "greatest") }
    package var least: String { word("min", "least") }

    /// Returns the right side of a condition such as `state \(dialect.isAny(1))`, which is true for a value in the
    /// list `$1`.
    package func isAny(_ number: Int) -> String {
        word("IN (SELECT value FROM json_each($\(number)))", "= ANY ($\(number))")
    }

    /// Returns a source such as `FROM \(dialect.each(2))`. It has a row for each text of `$2`, with the columns
    /// `value` and `key`, the order.
    package func each(_ number: Int) -> String {
        word("json_each($\(number))", "unnest($\(number)::text[]) WITH ORDINALITY AS given (value, key)")
    }

    /// Returns the table with the deliveries of a run; PostgreSQL has one table per run.
    ///
    /// - Parameter hint: the index that SQLite must use, or `NOT INDEXED`.
    package func deliveries(of run: Int64, _ hint: String = "") -> String {
        word(hint.isEmpty ? "delivery" : "delivery \(hint)", "delivery_\(run)")
    }

    package func deliveries(of run: Int64, as name: String, _ hint: String = "") -> String {
        word("delivery AS \(name)\(hint.isEmpty ? "" : " \(hint)")", "delivery_\(run) AS \(name)")
    }

    /// Returns an expression for the last bytes of a column in hex, or an empty text if the column is empty.
    package func hexOfLast(_ count: Int, of column: String) -> String {
        word(
            "lower(hex(substr(\(column), -\(count))))",
            "encode(substr(\(column), greatest(length(\(column)) - \(count - 1), 1)), 'hex')")
    }

    /// Returns the condition that selects a run's rows from its table of deliveries. The parameter's value is the run's
    /// id.
    package func isOf(parameter number: Int) -> String { word("run_id = $\(number)", "true") }

    package func isOf(run: Int64, _ name: String? = nil) -> String {
        word("\(name.map { "\($0)." } ?? "")run_id = \(run)", "true")
    }

    /// The suffix of a SELECT that skips rows locked by another transaction, and locks the others.
    package var skipLocked: String { word("", " FOR UPDATE SKIP LOCKED") }

    /// Returns the condition that a column is false. On SQLite its text is that of the partial indexes, because a
    /// query uses such an index only with the same text.
    package func isFalse(_ column: String) -> String { word("\(column) = 0", "NOT \(column)") }

    /// Returns a suffix for a table's name that tells SQLite which index to use. It is empty on PostgreSQL.
    package func hint(_ index: String) -> String { word(index, "") }

    /// The join of two tables in which SQLite reads the first table in the outer loop.
    package var orderedJoin: String { word("CROSS JOIN", "JOIN") }

    /// The function `position(text, part)`. It counts from 1, and returns 0 if the part is missing.
    package var position: String { word("instr", "strpos") }

    /// Returns an expression for the text at a path in a JSON column.
    package func json(_ column: String, _ path: String...) -> String { json(column, path: path) }

    package func json(_ column: String, path: [String]) -> String {
        word(
            "json_extract(\(column), '$.\(path.joined(separator: "."))')",
            "(\(column)::json #>> '{\(path.joined(separator: ","))}')")
    }

    /// Returns the suffix of an INSERT that writes no row if another transaction has just written the same row.
    /// SQLite does not need it, and has no index on some of these columns.
    package func unlessThere(_ columns: String) -> String {
        word("", "ON CONFLICT \(columns) DO NOTHING")
    }

    /// Returns a sort order, as in `ORDER BY \(dialect.bytes("user_id"))`. It sorts by bytes, whatever the
    /// database's collation.
    package func bytes(_ column: String) -> String { word(column, "\(column) COLLATE \"C\"") }

    /// Returns an expression for the bytes of a column in lower-case hex.
    package func hex(_ column: String) -> String { word("lower(hex(\(column)))", "encode(\(column), 'hex')") }

    /// Returns an expression for the texts of a column, as one value that ``SQLFields/texts(_:)`` reads.
    ///
    /// - Parameter rows: the rest of the query, from `FROM` on.
    package func list(_ column: String, _ rows: String) -> String {
        word("(SELECT json_group_array(\(column)) \(rows))", "ARRAY (SELECT \(column) \(rows))")
    }

    /// Returns a placeholder with its type, for a place where PostgreSQL cannot infer the type.
    package func typed(_ placeholder: String, _ type: String) -> String {
        word(placeholder, "\(placeholder)::\(type)")
    }

    /// Returns whether the engine can store a text. PostgreSQL cannot store NUL.
    package func canHold(_ text: String) -> Bool { self == .sqlite || !text.utf8.contains(0) }

    /// Returns an expression for a stored moment in the format of `Timestamp.iso8601`, without fractions of a
    /// second.
    package func second(_ column: String) -> String {
        word(
            "strftime('%Y-%m-%dT%H:%M:%SZ', \(column) / 1000, 'unixepoch')",
            "to_char(to_timestamp(\(column) / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')")
    }

    /// Returns an expression for a stored moment in the format of `Timestamp.iso8601`.
    package func moment(_ column: String) -> String {
        word(
            "strftime('%Y-%m-%dT%H:%M:%fZ', \(column) / 1000.0, 'unixepoch')",
            "to_char(to_timestamp(\(column) / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')")
    }

    package func word(_ sqlite: String, _ postgres: String) -> String {
        switch self {
        case .sqlite: sqlite
        case .postgres: postgres
        }
    }
}
