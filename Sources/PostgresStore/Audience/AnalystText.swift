import Store

/// The text of an `audience_sql` as PostgreSQL gets it. It is rebuilt from its tokens, so that the server reads the
/// same tokens as this check.
///
/// The role that runs the text decides what the text may read, see ``AdministratorSQL``. This type also refuses
/// functions that every role may call. The refused functions wait, take locks, reveal facts about the server, cannot
/// be stopped, or return a different value with each call.
struct AnalystText {
    /// The SQL, with `$1` in place of each `:now`.
    let sql: String
    /// The names after a dot that are not columns of a view, in lower case. A function can be called as if it were a
    /// column, and only the server knows which functions exist.
    let fields: Set<String>

    /// Throws `StoreError.audienceSQL`.
    init(_ text: String) throws {
        let tokens = try AudienceSQLText(text).tokens
        let dense = tokens.filter { $0 != .blank }
        let ends = Self.closingBrackets(dense)
        for index in dense.indices { try Self.check(dense, at: index, ends) }
        sql = try tokens.map(Self.written).joined()
        fields = Self.fields(dense)
    }

    /// Returns a token as text for PostgreSQL. A blank separates tokens that PostgreSQL would read as one, such as
    /// `E'...'` and `U&'...'`, which have other escapes.
    private static func written(_ token: AudienceSQLText.Token) throws -> String {
        switch token {
        case .blank: return " "
        case .word(let word): return word
        case .symbol(let symbol): return String(Character(symbol))
        case .cast: return "::"
        case .literal(let text): return " '\(text.unicodeReplacing("'", with: "''"))'"
        case .name(let name): return " \"\(name.unicodeReplacing("\"", with: "\"\""))\""
        case .parameter(":now"): return "($1::bigint)"
        case .parameter(let name): throw StoreError.audienceSQL(.unknownParameter(name))
        }
    }

    /// Returns, for each token, the index of the first closing bracket at or after the token. If there is none, the
    /// index is the number of tokens.
    private static func closingBrackets(_ tokens: [AudienceSQLText.Token]) -> [Int] {
        var ends = Array(repeating: tokens.count, count: tokens.count)
        var end = tokens.count
        for index in tokens.indices.reversed() {
            if tokens[index] == .symbol(")") { end = index }
            ends[index] = end
        }
        return ends
    }

    private static func check(_ tokens: [AudienceSQLText.Token], at index: Int, _ ends: [Int]) throws {
        let before = index > 0 ? tokens[index - 1] : nil
        let behind = index + 1 < tokens.count ? tokens[index + 1] : nil
        switch tokens[index] {
        case .symbol("$"): throw refused("a dollar sign")
        case .symbol("^"): throw refused("the operator ^")
        case .symbol("|") where behind == .symbol("/"): throw refused("the operator |/")
        case .symbol("|") where behind == .symbol("|"): throw refused("the operator ||")
        case .symbol("."):
            // A function may be called as if it were a column: `('...'::text).f`.
            switch before {
            case .symbol(")"), .symbol("]"), .literal, .parameter: throw refused("a name after a bracket or quote")
            default: break
            }
        case .word(let name), .name(let name):
            let name = name.lowercased()
            guard !isRefused(name), before != .symbol(".") || !isRefusedAsColumn(name) else {
                throw refused("the name \(name)")
            }
            if name == "array" || name == "row" { throw refused(name.uppercased()) }
            guard behind == .symbol("(") else { break }
            guard !sizedTypes.contains(name) else { throw refused("a length in \(name)()") }
            let isListed = permitted.contains(name) || functions.contains(name)
            guard isListed || namesColumns(tokens, at: index, end: ends[index]) else {
                throw refused("the function \(name)()")
            }
        default: break
        }
    }

    private static func fields(_ tokens: [AudienceSQLText.Token]) -> Set<String> {
        var fields: Set<String> = []
        for (dot, name) in zip(tokens, tokens.dropFirst()) where dot == .symbol(".") {
            switch name {
            case .word(let name), .name(let name): fields.insert(name.lowercased())
            default: break
            }
        }
        return fields.subtracting(columns)
    }

    private static func refused(_ what: String) -> StoreError { .audienceSQL(.refused(what)) }

    /// Returns whether the name reveals facts about the server or the user.
    private static func isRefused(_ name: String) -> Bool {
        name.hasPrefix("pg_") || name.hasPrefix("current_") || refusedNames.contains(name)
    }

    private static func isRefusedAsColumn(_ name: String) -> Bool {
        name.hasPrefix("lo_") || name.hasPrefix("dblink") || refusedColumns.contains(name)
    }

    /// Returns whether a name before a bracket is the name of a table, with the names of its columns in the bracket.
    /// Examples are `AS t(a, b)`, and the second name in `WITH t(a) AS (...), u(b) AS (SELECT ...)`.
    ///
    /// - Parameter end: the index of the first closing bracket after the name.
    private static func namesColumns(_ tokens: [AudienceSQLText.Token], at index: Int, end: Int) -> Bool {
        guard index > 0 else { return false }
        switch tokens[index - 1] {
        case .word(let word): return ["AS", "WITH", "RECURSIVE"].contains(word.uppercased())
        case .symbol(","):
            guard end + 3 < tokens.count, case .word(let first) = tokens[end + 1], first.uppercased() == "AS",
                tokens[end + 2] == .symbol("("),
                case .word(let second) = tokens[end + 3]
            else { return false }
            // `values` may be the name of a column.
            return ["SELECT", "WITH"].contains(second.uppercased())
        default: return false
        }
    }

    /// The types that take a length. A long length would create a value of any size.
    private static let sizedTypes: Set<String> = [
        "bit", "bpchar", "char", "character", "nchar", "varbit", "varchar", "varying",
    ]
    /// The columns of the analysts' views.
    private static let columns: Set<String> = [
        "id", "topic", "environment", "status", "status_reason", "installation_id", "user_id", "locale", "time_zone",
        "country", "app_version", "app_version_key", "os_version", "os_version_key", "model", "alerts_allowed", "badge",
        "registered_at", "last_seen_at", "attributes", "device_id", "tag", "segment", "run_id", "campaign",
        "occurrence",
        "state", "reason", "attempts", "variant", "changed_at", "is_test", "created_at", "started_at", "finished_at",
        "holdout_seed", "variant_seed",
    ]
    private static let refusedNames: Set<String> = [
        "information_schema", "localtime", "localtimestamp", "regclass", "regcollation", "regconfig", "regdictionary",
        "regnamespace", "regoper", "regoperator", "regproc", "regprocedure", "regrole", "regtype", "session_user",
        "system_user", "user",
    ]
    private static let refusedColumns: Set<String> = [
        "currval", "exp", "lastval", "ln", "log", "nextval", "power", "random", "repeat", "replace", "set_config",
        "setseed", "setval", "sqrt", "ts_stat",
    ]
    /// The words that may stand before a bracket and are not functions, in lower case. Those that are types take a
    /// precision.
    private static let permitted: Set<String> = [
        "all", "and", "any", "as", "between", "by", "case", "cast", "decimal", "distinct", "else",
        "except", "exists", "filter", "from", "group", "having", "ilike", "in", "intersect", "is", "join", "lateral",
        "like", "limit", "materialized", "not", "numeric", "offset", "on", "or", "order", "over", "partition",
        "select", "similar", "some", "then", "to", "union", "using", "values", "when", "where", "with",
        "within",
    ]
    /// The allowed functions. They change nothing, reveal nothing about the server, and return the same value for
    /// the same row. An interrupted freeze therefore continues with the same audience. Some of them, such as
    /// `position`, ignore a time limit while they run. None returns a value that is larger than its arguments,
    /// unlike `concat`, `||` and `ARRAY(SELECT ...)`. A cast of a row to text still can, and so can arithmetic on
    /// long numbers. The time limit therefore does not stop a deliberate attack.
    private static let functions: Set<String> = [
        "abs", "avg", "bool_and", "bool_or", "btrim", "ceil", "ceiling", "char_length", "coalesce", "count",
        "cume_dist", "date_part", "date_trunc", "dense_rank", "every", "extract", "first_value",
        "floor", "greatest", "json_array_length", "jsonb_array_elements_text", "jsonb_array_length", "jsonb_each_text",
        "jsonb_extract_path", "jsonb_extract_path_text", "jsonb_object_keys", "jsonb_typeof", "lag", "last_value",
        "lead", "least", "left", "length", "lower", "ltrim", "max", "min", "mod", "nth_value", "ntile", "nullif",
        "octet_length", "percent_rank", "position", "rank", "right", "round", "row_number", "rtrim", "sign",
        "split_part", "starts_with", "strpos", "substr", "substring", "sum", "to_char", "to_timestamp", "trim",
        "trunc", "upper",
    ]
}

extension String {
    /// Replaces the scalar even if a combining mark follows it.
    fileprivate func unicodeReplacing(_ scalar: Unicode.Scalar, with text: String) -> String {
        var view = UnicodeScalarView()
        for each in unicodeScalars {
            if each == scalar { view.append(contentsOf: text.unicodeScalars) } else { view.append(each) }
        }
        return String(view)
    }
}
