import Store

/// The text of an `audience_sql` as PostgreSQL reads it, as far as that must be known: what it calls, what it is given, and that
/// it is one query. What it may read is the role's matter, see ``AnalystAudience``.
///
/// A role alone is not enough: a function such as `set_config` would leave it.
struct AnalystText {
    /// With `$1` where `:now` stood, which may be nowhere.
    let sql: String
    let usesNow: Bool

    /// Throws `StoreError.audienceSQL`.
    init(_ text: String) throws {
        if let verb = AudienceSQLText.otherVerb(in: text) { throw StoreError.audienceSQL(.refused(verb)) }
        guard !AudienceSQLText.isBlank(text) else { throw StoreError.audienceSQL(.invalid("it is empty")) }
        var reader = Reader(text)
        try reader.read()
        sql = reader.output
        usesNow = reader.usesNow
    }

    /// What may stand before a parenthesis and is no function, in lower case; the types among them take a length.
    private static let words: Set<String> = [
        "all", "and", "any", "array", "as", "between", "by", "case", "cast", "char", "decimal", "distinct", "else",
        "except", "exists", "filter", "from", "group", "having", "ilike", "in", "interval", "intersect", "is", "join",
        "lateral", "like", "limit", "materialized", "not", "numeric", "offset", "on", "or", "order", "over",
        "partition",
        "row", "select", "similar", "some", "then", "time", "timestamp", "timestamptz", "to", "union", "using",
        "values",
        "varchar", "when", "where", "with", "within",
    ]
    /// Those that neither change nor reveal anything and give the same for the same row, so that an interrupted freeze
    /// goes on with the audience it began with.
    private static let functions: Set<String> = [
        "abs", "avg", "bool_and", "bool_or", "btrim", "ceil", "ceiling", "char_length", "coalesce", "concat",
        "concat_ws",
        "count", "cume_dist", "date_part", "date_trunc", "dense_rank", "every", "exp", "extract", "first_value",
        "floor",
        "greatest", "json_array_length", "json_extract_path", "json_extract_path_text", "jsonb_array_length",
        "jsonb_extract_path", "jsonb_extract_path_text", "lag", "last_value", "lead", "least", "left", "length", "ln",
        "log", "lower", "ltrim", "max", "min", "mod", "nth_value", "ntile", "nullif", "octet_length", "percent_rank",
        "position", "power", "rank", "replace", "right", "round", "row_number", "rtrim", "sign", "split_part", "sqrt",
        "starts_with", "strpos", "substr", "substring", "sum", "to_char", "to_timestamp", "trim", "trunc", "upper",
    ]

    private struct Reader {
        private var rest: Substring
        private(set) var output = ""
        private(set) var usesNow = false
        /// The last name, while nothing but blanks has come since.
        private var name: String?

        init(_ text: String) { rest = text[...] }

        mutating func read() throws {
            while let next = rest.first {
                if next.isWhitespace || rest.hasPrefix("--") || rest.hasPrefix("/*") {
                    try skipBlank()
                } else if next == "'" {
                    try take(quotedBy: "'")
                    name = nil
                } else if next == "\"" {
                    name = try take(quotedBy: "\"")
                } else if next == "_" || next.isLetter {
                    try takeName()
                } else if next == "$" {
                    throw StoreError.audienceSQL(.refused("a dollar sign"))
                } else if next == ":" {
                    try takeColon()
                } else if next == ";" {
                    guard AudienceSQLText.isBlank(String(rest)) else {
                        throw StoreError.audienceSQL(.severalStatements)
                    }
                    return
                } else {
                    if next == "(", let name { try requireAllowed(name) }
                    name = nil
                    output.append(rest.removeFirst())
                }
            }
        }

        private func requireAllowed(_ name: String) throws {
            let lower = name.lowercased()
            guard AnalystText.words.contains(lower) || AnalystText.functions.contains(lower) else {
                throw StoreError.audienceSQL(.refused("the function \(name)()"))
            }
        }

        /// As one blank: a comment may hold anything.
        private mutating func skipBlank() throws {
            if rest.hasPrefix("--") {
                rest = rest.drop { !$0.isNewline }
            } else if rest.hasPrefix("/*") {
                guard let end = rest.dropFirst(2).firstRange(of: "*/") else {
                    throw StoreError.audienceSQL(.invalid("a comment has no end"))
                }
                // They nest here, and elsewhere they do not.
                guard !rest.dropFirst(2)[..<end.lowerBound].contains("/*") else {
                    throw StoreError.audienceSQL(.refused("a comment in a comment"))
                }
                rest = rest[end.upperBound...]
            } else {
                rest = rest.drop(while: \.isWhitespace)
            }
            output.append(" ")
        }

        /// To the quote that closes it; what stands between, twice the quote being one.
        @discardableResult
        private mutating func take(quotedBy quote: Character) throws -> String {
            var inside = ""
            output.append(rest.removeFirst())
            while let next = rest.popFirst() {
                output.append(next)
                guard next == quote else {
                    inside.append(next)
                    continue
                }
                guard rest.first == quote else { return inside }
                output.append(rest.removeFirst())
                inside.append(quote)
            }
            throw StoreError.audienceSQL(.invalid("a quote has no end"))
        }

        private mutating func takeName() throws {
            let word = rest.prefix { $0 == "_" || $0 == "$" || $0.isLetter || $0.isNumber }
            rest = rest[word.endIndex...]
            // E'...' and U&'...' have escapes of their own.
            guard !word.contains("$"), rest.first != "'", !(word.lowercased() == "u" && rest.first == "&") else {
                throw StoreError.audienceSQL(.refused("\(word) before a quote or with a dollar sign"))
            }
            output += word
            name = String(word)
        }

        private mutating func takeColon() throws {
            name = nil
            rest.removeFirst()
            if rest.first == ":" {
                rest.removeFirst()
                output += "::"
                return
            }
            let word = rest.prefix { $0 == "_" || $0.isLetter || $0.isNumber }
            guard !word.isEmpty else {
                output += ":"
                return
            }
            guard word == "now" else { throw StoreError.audienceSQL(.unknownParameter(":\(word)")) }
            rest = rest[word.endIndex...]
            output += "$1::bigint"
            usesNow = true
        }
    }
}
