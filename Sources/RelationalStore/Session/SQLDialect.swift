/// What the two engines say differently, for statements that are otherwise one text.
///
/// SQLite lets one transaction write at a time: what locks a row or decides between two writers is empty there.
package enum SQLDialect: Sendable {
    case sqlite, postgres

    /// Behind a SELECT: nobody else changes the rows found until the transaction ends.
    package var lock: String { word("", " FOR NO KEY UPDATE") }

    /// Behind a SELECT: the rows found stay as they are until the transaction ends.
    package var share: String { word("", " FOR SHARE") }

    /// Of several values the largest, or the smallest. With a NULL among them the engines differ.
    package var greatest: String { word("max", "greatest") }
    package var least: String { word("min", "least") }

    /// `state \(dialect.isAny(1))`: whether it is among the values given for `$1`.
    package func isAny(_ number: Int) -> String {
        word("IN (SELECT value FROM json_each($\(number)))", "= ANY ($\(number))")
    }

    /// `FROM \(dialect.each(2))`: the texts given for `$2` as rows of `value`, in the order of `key`.
    package func each(_ number: Int) -> String {
        word("json_each($\(number))", "unnest($\(number)::text[]) WITH ORDINALITY AS given (value, key)")
    }

    /// The table with the deliveries of a run; PostgreSQL has one for each.
    ///
    /// - Parameter hint: the index that SQLite is to take, or `NOT INDEXED`.
    package func deliveries(of run: Int64, _ hint: String = "") -> String {
        word(hint.isEmpty ? "delivery" : "delivery \(hint)", "delivery_\(run)")
    }

    package func deliveries(of run: Int64, as name: String, _ hint: String = "") -> String {
        word("delivery AS \(name)\(hint.isEmpty ? "" : " \(hint)")", "delivery_\(run) AS \(name)")
    }

    /// The last bytes of a column in hex; an empty text where there are none.
    package func hexOfLast(_ count: Int, of column: String) -> String {
        word(
            "lower(hex(substr(\(column), -\(count))))",
            "encode(substr(\(column), greatest(length(\(column)) - \(count - 1), 1)), 'hex')")
    }

    /// Which rows of that table are the run's, whose number is given for this parameter.
    package func isOf(parameter number: Int) -> String { word("run_id = $\(number)", "true") }

    /// Behind a SELECT: leaves out the rows that another transaction has locked, and locks the others.
    package var skipLocked: String { word("", " FOR UPDATE SKIP LOCKED") }

    /// SQLite's indexes of a part of a table say it so, and serve only a query that does.
    package func isFalse(_ column: String) -> String { word("\(column) = 0", "NOT \(column)") }

    /// Behind a table's name: the index that SQLite is to take.
    package func hint(_ index: String) -> String { word(index, "") }

    /// Between two tables: SQLite goes through the first one in the outer loop.
    package var orderedJoin: String { word("CROSS JOIN", "JOIN") }

    /// `position(text, part)`: from 1; 0 where the part is not there.
    package var position: String { word("instr", "strpos") }

    /// The text at a path in a column of JSON.
    package func json(_ column: String, _ path: String...) -> String { json(column, path: path) }

    package func json(_ column: String, path: [String]) -> String {
        word(
            "json_extract(\(column), '$.\(path.joined(separator: "."))')",
            "(\(column)::json #>> '{\(path.joined(separator: ","))}')")
    }

    /// Behind an INSERT: writes nothing where another transaction has just written such a row. SQLite needs no answer to
    /// that, and has no index of some of these columns.
    package func unlessThere(_ columns: String) -> String {
        word("", "ON CONFLICT \(columns) DO NOTHING")
    }

    /// A stored moment as `Timestamp.iso8601` writes it.
    package func moment(_ column: String) -> String {
        word(
            "strftime('%Y-%m-%dT%H:%M:%fZ', \(column) / 1000.0, 'unixepoch')",
            "to_char(to_timestamp(\(column) / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')")
    }

    func word(_ sqlite: String, _ postgres: String) -> String {
        switch self {
        case .sqlite: sqlite
        case .postgres: postgres
        }
    }
}
