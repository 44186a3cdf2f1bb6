package import Model

/// Reads an audience expression.
///
///     expression = term { "or" term }        term = factor { "and" factor }
///     factor     = "not" factor | "(" expression ")" | "everyone" | segment("x") | tag("x") | condition
///     condition  = field (comparison value | ["not"] "in" (value, ...) | "is" ["not"] "null"
///                  | ["not"] "between" value "and" value | ["not"] "within" number unit)
///
/// Keywords are read in any case. All semantic errors are reported. After a syntax error, the rest is not read. At most
/// 100 levels of brackets and `not` are allowed.
package struct AudienceParser {
    static let depthMax = 100
    /// The maximum length of an expression.
    private static let bytesMax = 262_144
    /// The number of problems after which the rest is not read. Each one may look for a similar name.
    private static let problemsMax = 50

    /// Thrown after a syntax error was reported.
    struct Stop: Error {}

    private let tokens: [AudienceToken]
    private var index = 0
    private var depth = 0
    private var problems: [AudienceProblem]

    /// Returns the expression, or `nil` with the problems.
    package static func parse(_ text: String) -> (AudienceExpression?, [AudienceProblem]) {
        guard text.utf8.count <= bytesMax else {
            return (
                nil,
                [
                    .init(
                        offset: 0, length: 0, what: "the audience is longer than \(bytesMax) bytes",
                        advice: "put its devices into a segment")
                ]
            )
        }
        var lexer = AudienceLexer(text)
        let tokens = lexer.tokens()
        var parser = AudienceParser(tokens: tokens, problems: lexer.problems)
        let expression = parser.whole()
        let problems = parser.problems.sorted { $0.offset < $1.offset }
        return problems.isEmpty ? (expression, []) : (nil, problems)
    }

    private init(tokens: [AudienceToken], problems: [AudienceProblem]) {
        self.tokens = tokens
        self.problems = problems
    }

    private mutating func whole() -> AudienceExpression? {
        guard current.kind != .end else {
            report("the audience is empty", "write a condition, or \"everyone\" for every device of the topic")
            return nil
        }
        do {
            let expression = try expression()
            guard current.kind == .end else {
                throw stop(
                    "expected \"and\", \"or\" or the end, found \(current.found)",
                    "join conditions with \"and\" or \"or\"")
            }
            return expression
        } catch {
            return nil
        }
    }

    private mutating func expression() throws(Stop) -> AudienceExpression {
        var parts = [try term()]
        while take("or") { parts.append(try term()) }
        return parts.count == 1 ? parts[0] : .any(parts)
    }

    private mutating func term() throws(Stop) -> AudienceExpression {
        var parts = [try factor()]
        while take("and") { parts.append(try factor()) }
        return parts.count == 1 ? parts[0] : .all(parts)
    }

    private mutating func factor() throws(Stop) -> AudienceExpression {
        depth += 1
        defer { depth -= 1 }
        guard problems.count < Self.problemsMax else { throw Stop() }
        guard depth <= Self.depthMax else {
            throw stop("nested more than \(Self.depthMax) levels deep", "make the expression simpler")
        }
        if take("not") { return .not(try factor()) }
        if take("everyone") { return .everyone }
        if takeSign("(") {
            let inside = try expression()
            try expect(")", "close the bracket")
            return inside
        }
        if current.isWord("segment") || current.isWord("tag") { return try membership() }
        return try condition()
    }

    private mutating func membership() throws(Stop) -> AudienceExpression {
        let isSegment = current.isWord("segment")
        let name = try argument(example: isSegment ? "segment(\"podcast-fans\")" : "tag(\"beta\")")
        return isSegment ? .segment(name) : .tag(name)
    }

    /// Reads `("x")` after a function's name, which is the current token.
    private mutating func argument(example: String) throws(Stop) -> String {
        advance()
        try expect("(", "write \(example)")
        guard case .text(let name) = current.kind else {
            throw stop("expected a name in quotes, found \(current.found)", "write \(example)")
        }
        if name.isEmpty { report("the name is empty", "write \(example)") }
        advance()
        try expect(")", "write \(example)")
        return name
    }

    private mutating func condition() throws(Stop) -> AudienceExpression {
        let field = try field()
        let isNegated = take("not")
        if isNegated, !["in", "between", "within"].contains(where: { current.isWord($0) }) {
            throw stop(
                "expected \"in\", \"between\" or \"within\" after \"not\", found \(current.found)",
                "write \"not\" before the field")
        }
        let condition = try test(of: field)
        return isNegated ? .not(condition) : condition
    }

    /// Returns `nil` if the field does not exist. Its condition is then read with no type check.
    private mutating func field() throws(Stop) -> AudienceField? {
        guard case .word(let name) = current.kind, !Self.reserved.contains(name.lowercased()) else {
            throw stop(
                "expected a condition, found \(current.found)", "write for example locale = \"de\" or segment(\"fans\")"
            )
        }
        if name.lowercased() == "attribute" {
            return .attribute(try argument(example: "attribute(\"plan\")"))
        }
        let known = AudienceField(named: name)
        if known == nil { refuseUnknown(name) }
        advance()
        if known == nil, current.isSign("(") { throw Stop() }
        return known
    }

    private mutating func test(of field: AudienceField?) throws(Stop) -> AudienceExpression {
        let verb = current
        if case .sign(let sign) = verb.kind, let comparison = ComparisonOperator(rawValue: sign) {
            check(sign, on: field)
            advance()
            return .comparison(field ?? .country, comparison, try value(for: field))
        }
        if take("in") {
            check("in", at: verb, on: field)
            return .oneOf(field ?? .country, try values(for: field))
        }
        if take("is") {
            let isNegated = take("not")
            guard take("null") else { throw stop("expected null, found \(current.found)", "write is null") }
            let isNull = AudienceExpression.isNull(field ?? .country)
            return isNegated ? .not(isNull) : isNull
        }
        if take("between") {
            check("between", at: verb, on: field)
            let low = try value(for: field)
            guard take("and") else {
                throw stop("expected \"and\", found \(current.found)", "write \"between a and b\"")
            }
            return .between(field ?? .country, low, try value(for: field))
        }
        if take("within") {
            check("within", at: verb, on: field)
            return .within(field ?? .lastSeenAt, try span())
        }
        let name = field?.name ?? "the field"
        throw stop(
            "expected a comparison after \(name), found \(verb.found)",
            field.map { "\($0.name) is \($0.kind.summary); it allows \($0.kind.allowed.joined(separator: " "))" } ?? "")
    }

    private mutating func values(for field: AudienceField?) throws(Stop) -> [AudienceValue] {
        try expect("(", "write in (\"a\", \"b\")")
        var values = [try value(for: field)]
        while takeSign(",") { values.append(try value(for: field)) }
        try expect(")", "separate values by commas and close the bracket")
        return values
    }

    private mutating func value(for field: AudienceField?) throws(Stop) -> AudienceValue {
        let token = current
        switch token.kind {
        case .end, .sign: throw stop("expected a value, found \(token.found)", "put texts in quotes")
        case .word(let word) where Self.reserved.contains(word.lowercased()) && !["true", "false"].contains(word):
            throw stop("expected a value, found \(token.found)", "put texts in quotes")
        case .word, .text, .number: break
        }
        advance()
        // Any value will do after a mistake, because the expression is discarded. Reading continues to find other
        // mistakes.
        guard let field else { return .boolean(false) }
        switch AudienceLiteral.value(of: token, for: field) {
        case .success(let value): return value
        case .failure(let mistake):
            report(at: token, mistake.what, mistake.advice)
            return .boolean(false)
        }
    }

    private mutating func span() throws(Stop) -> Duration {
        guard case .number(let text) = current.kind, let count = Int64(text), (1...1_000_000).contains(count) else {
            throw stop("expected a number of days, found \(current.found)", "write for example within 90 days")
        }
        advance()
        guard case .word(let word) = current.kind, let seconds = AudienceSpan.seconds(in: word) else {
            throw stop("expected a unit, found \(current.found)", "use minutes, hours, days or weeks")
        }
        advance()
        return .seconds(count * seconds)
    }
}

extension AudienceParser {
    private static let reserved: Set<String> = [
        "and", "or", "not", "in", "is", "null", "between", "within", "everyone", "true", "false",
    ]

    /// Words that authors try and that resemble no field.
    private static let synonyms = [
        "lang": "locale", "language": "locale", "tz": "time_zone", "zone": "time_zone", "region": "country",
        "version": "app_version", "os": "os_version", "device": "model", "user": "user_id", "active": "last_seen",
        "installed": "registered",
    ]

    private var current: AudienceToken { tokens[index] }

    private mutating func advance() {
        if index < tokens.count - 1 { index += 1 }
    }

    private mutating func take(_ word: String) -> Bool {
        guard current.isWord(word) else { return false }
        advance()
        return true
    }

    private mutating func takeSign(_ sign: String) -> Bool {
        guard current.isSign(sign) else { return false }
        advance()
        return true
    }

    private mutating func expect(_ sign: String, _ advice: String) throws(Stop) {
        guard takeSign(sign) else { throw stop("expected \(quoted(sign)), found \(current.found)", advice) }
    }

    private mutating func check(_ verb: String, at token: AudienceToken? = nil, on field: AudienceField?) {
        guard let field, !field.kind.allowed.contains(verb) else { return }
        let hint = field.kind == .time && verb == "=" ? "; for one day write \"between\" two dates" : ""
        report(
            at: token, "\(field.name) is \(field.kind.summary) and does not allow \(verb)",
            "use \(field.kind.allowed.joined(separator: " "))\(hint)")
    }

    private mutating func refuseUnknown(_ name: String) {
        if let attribute = Self.attribute(in: name) {
            report("unknown audience field \(quoted(name))", "write attribute(\(quoted(attribute)))")
            return
        }
        let functions = ["segment", "tag", "attribute"]
        let isCall = tokens[min(index + 1, tokens.count - 1)].isSign("(")
        let fields = AudienceField.named.map(\.name)
        let meant =
            (isCall ? nil : Self.synonyms[name.lowercased()])
            ?? Suggestion.nearest(to: name, among: isCall ? functions : fields)
        let nearest = meant.map { "did you mean \(quoted($0))?" }
        let all =
            isCall ? functions : fields.filter { !["registered", "last_seen"].contains($0) } + ["attribute(\"NAME\")"]
        report(
            "unknown audience \(isCall ? "function" : "field") \(quoted(name))",
            nearest ?? "known are \(all.joined(separator: ", "))")
    }

    /// Returns the name of the attribute in `attributes.plan`, the form that columns and templates use. `nil` for any
    /// other name.
    private static func attribute(in name: String) -> String? {
        let prefix = ["attributes.", "attribute."].first { name.lowercased().hasPrefix($0) && name.count > $0.count }
        return prefix.map { String(name.dropFirst($0.count)) }
    }

    private mutating func report(at token: AudienceToken? = nil, _ what: String, _ advice: String) {
        guard problems.count < AudienceLexer.problemsMax else { return }
        let token = token ?? current
        problems.append(AudienceProblem(offset: token.offset, length: token.length, what: what, advice: advice))
    }

    private mutating func stop(_ what: String, _ advice: String) -> Stop {
        report(what, advice)
        return Stop()
    }
}
