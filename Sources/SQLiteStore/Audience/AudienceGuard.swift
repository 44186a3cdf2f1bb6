import GRDBSQLite

/// Says no to everything an `audience_sql` has no business with. SQLite asks while it compiles the statement.
///
/// Tables of the store may be read through our inner views only. SQLite names the view a column is read through by the
/// word in the text, and a common table expression may bear the name of a view; so the inner views have names nobody
/// can guess, and only those count.
final class AudienceGuard {
    static let tableFunctions: Set<String> = ["json_each", "json_tree"]
    private static let schemaTables: Set<String> = ["sqlite_master", "sqlite_temp_master"]
    /// Those that neither change nor reveal anything and give the same for the same row, so that an interrupted freeze
    /// goes on with the audience it began with.
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
    /// The first thing refused, in words.
    private(set) var refusal: String?

    init(views: Set<String>, innerViews: Set<String>) {
        self.views = views
        self.innerViews = innerViews
    }

    /// What `sqlite3_set_authorizer` is told.
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
        // No query does this, but for SQLite itself when it meets such a function for the first time.
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
        // A table of which no column is needed in the end, asked about once more without saying through what.
        return column.isEmpty && tablesRead.contains(table)
    }

    private static func name(_ table: String, _ column: String) -> String {
        column.isEmpty ? table : "\(table).\(column)"
    }
}
