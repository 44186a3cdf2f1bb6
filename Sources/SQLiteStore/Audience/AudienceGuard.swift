import GRDBSQLite

/// Refuses everything that an `audience_sql` must not do. SQLite calls it while it compiles the statement.
///
/// The tables of the store may be read only through the inner views. For each column that is read, SQLite reports
/// the view by its name in the query text. A common table expression can use the name of a view. The inner views
/// therefore have unguessable names, and only a read through such a name is allowed.
final class AudienceGuard {
    static let tableFunctions: Set<String> = ["json_each", "json_tree"]
    private static let schemaTables: Set<String> = ["sqlite_master", "sqlite_temp_master"]
    /// The allowed functions. They change nothing, reveal nothing about the system, and return the same value for
    /// the same row. An interrupted freeze therefore continues with the same audience.
    private static let functions: Set<String> = [
        "->", "->>", "abs", "avg", "ceil", "ceiling", "char", "coalesce", "count", "cume_dist", "current_date",
        "current_time", "current_timestamp", "date", "datetime", "dense_rank", "exp", "first_value", "floor", "format",
        "glob", "group_concat", "hex", "ifnull", "iif", "instr", "json", "json_array", "json_array_length",
        "json_extract", "json_group_array", "json_group_object", "json_object", "json_quote", "json_type", "json_valid",
        "julianday", "lag", "last_value", "lead", "length", "like", "likelihood", "likely", "ln", "log", "log10",
        "log2",
        "lower", "ltrim", "max", "min", "mod", "nth_value", "ntile", "nullif", "percent_rank", "pow", "power", "printf",
        "quote", "rank", "replace", "round", "row_number", "rtrim", "sign", "sqrt", "strftime", "substr", "substring",
        "sum", "time", "total", "trim", "trunc", "typeof", "unicode", "unixepoch", "unlikely", "upper",
    ]

    private let views: Set<String>
    private let innerViews: Set<String>
    private var tablesRead: Set<String> = []
    /// The description of what was refused first.
    private(set) var refusal: String?

    init(views: Set<String>, innerViews: Set<String>) {
        self.views = views
        self.innerViews = innerViews
    }

    /// Returns the verdict on one action that SQLite reports; see `sqlite3_set_authorizer`.
    func verdict(_ action: Int32, _ first: String, _ second: String, through context: String?) -> Int32 {
        guard let refused = refusal(of: action, first, second, through: context) else { return SQLITE_OK }
        refusal = refusal ?? refused
        return SQLITE_DENY
    }

    private func refusal(of action: Int32, _ first: String, _ second: String, through context: String?) -> String? {
        switch action {
        case SQLITE_SELECT, SQLITE_RECURSIVE: nil
        case SQLITE_READ: mayRead(first, second, through: context) ? nil : "reading \(Self.name(first, second))"
        case SQLITE_FUNCTION: Self.functions.contains(second.lowercased()) ? nil : "the function \(second)()"
        case SQLITE_PRAGMA: "PRAGMA \(first)"
        case SQLITE_ATTACH: "ATTACH"
        // Only SQLite itself writes to these tables, when it registers a table-valued function at its first use.
        case SQLITE_INSERT where Self.schemaTables.contains(first),
            SQLITE_UPDATE where Self.schemaTables.contains(first):
            "a table-valued function other than \(Self.tableFunctions.sorted().joined(separator: " and "))"
        case SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE: "changing \(first)"
        default: "something other than a SELECT"
        }
    }

    private func mayRead(_ table: String, _ column: String, through context: String?) -> Bool {
        if views.contains(table) || innerViews.contains(table) || Self.tableFunctions.contains(table) { return true }
        if let context, innerViews.contains(context) {
            tablesRead.insert(table)
            return true
        }
        // If a query needs no column of a table after all, SQLite reports the table again without the view.
        return column.isEmpty && tablesRead.contains(table)
    }

    private static func name(_ table: String, _ column: String) -> String {
        column.isEmpty ? table : "\(table).\(column)"
    }
}
