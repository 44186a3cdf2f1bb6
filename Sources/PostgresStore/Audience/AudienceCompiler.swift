import Model
import RelationalStore
import Store

/// Says an audience in SQL over the table `device`.
struct AudienceCompiler {
    private let db: PostgresSession
    private let now: Timestamp

    /// Segments are looked up in `db`, times are relative to `now`.
    init(_ db: PostgresSession, now: Timestamp) {
        self.db = db
        self.now = now
    }

    /// Throws what ``AudienceResolver/resolve(_:)`` does.
    ///
    /// - Parameter defined: what a segment is about to be, whatever it is on record.
    func condition(
        for expression: AudienceExpression, defining defined: (name: String, expression: AudienceExpression)? = nil
    ) throws -> AudienceCondition {
        var resolver = AudienceResolver(db, now: now, defining: defined)
        var condition = AudienceCondition()
        condition.sql = Self.sql(try resolver.resolve(expression), &condition)
        return condition
    }

    /// Returns what needs no further brackets.
    private static func sql(_ audience: ResolvedAudience, _ condition: inout AudienceCondition) -> String {
        switch audience {
        case .everyone: "TRUE"
        case .nobody: "FALSE"
        case .all(let parts): "(" + parts.map { sql($0, &condition) }.joined(separator: " AND ") + ")"
        case .any(let parts): any(of: parts, &condition)
        case .not(let part): "(NOT \(sql(part, &condition)))"
        case .member(let segment):
            "(device.id IN (SELECT device_id FROM segment_member WHERE segment_id = \(condition.add(segment))))"
        case .tagged(let name):
            """
            EXISTS (SELECT 1 FROM tag WHERE tag.device_id = device.id AND tag.name = \(condition.add(name)))
            """
        default: "((\(predicate(audience, &condition))) IS TRUE)"
        }
    }

    /// Tags and segments are looked up together: each by itself is another look for every device.
    private static func any(of parts: [ResolvedAudience], _ condition: inout AudienceCondition) -> String {
        var (tags, segments): ([String], [Int64]) = ([], [])
        var rest: [ResolvedAudience] = []
        for part in parts {
            switch part {
            case .tagged(let name): tags.append(name)
            case .member(let segment): segments.append(segment)
            default: rest.append(part)
            }
        }
        var sides = rest.map { sql($0, &condition) }
        if !tags.isEmpty {
            sides.append(
                "EXISTS (SELECT 1 FROM tag WHERE tag.device_id = device.id AND tag.name = ANY (\(condition.add(tags))))"
            )
        }
        if !segments.isEmpty {
            let list = condition.add(segments)
            sides.append("(device.id IN (SELECT device_id FROM segment_member WHERE segment_id = ANY (\(list))))")
        }
        return "(" + sides.joined(separator: " OR ") + ")"
    }

    private static func predicate(_ audience: ResolvedAudience, _ condition: inout AudienceCondition) -> String {
        switch audience {
        case .compared(let field, let comparison, let value):
            return "\(column(field, &condition)) \(sql(comparison)) \(condition.add(value, of: field))"
        case .between(let field, let low, let high):
            let column = column(field, &condition)
            return "\(column) BETWEEN \(condition.add(low, of: field)) AND \(condition.add(high, of: field))"
        case .oneOf(let field, let values):
            return "\(column(field, &condition)) = ANY (\(condition.add(values, of: field)))"
        case .locales(let conditions):
            return conditions.isEmpty ? "FALSE" : "(" + locales(conditions, &condition).joined(separator: " OR ") + ")"
        case .isNull(let field):
            return "\(AudienceColumn.stored(field) { condition.add($0) }) IS NULL"
        case .everyone, .nobody, .all, .any, .not, .member, .tagged: return "FALSE"
        }
    }

    /// Languages that are written in one way only are looked up together.
    private static func locales(_ asked: [LocaleCondition], _ condition: inout AudienceCondition) -> [String] {
        let plain = asked.filter(\.isPlain).map(\.language)
        let others = asked.filter { !$0.isPlain }.map { asked in
            // The language alone lets all other devices go by after one comparison.
            var parts = [begins(withAny: [asked.language], &condition)]
            if asked.prefixes != [asked.language] { parts.append(begins(withAny: asked.prefixes, &condition)) }
            if !asked.exceptions.isEmpty { parts.append("NOT " + begins(withAny: asked.exceptions, &condition)) }
            if asked.isWithoutScripts {
                parts.append("device.locale !~ \(condition.add("^\(asked.language)-[A-Za-z]{4}(-|$)"))")
            }
            return "(" + parts.joined(separator: " AND ") + ")"
        }
        return (plain.isEmpty ? [] : [begins(withAny: plain, &condition)]) + others
    }

    private static func begins(withAny prefixes: [String], _ condition: inout AudienceCondition) -> String {
        // `.` is the character after `-`.
        """
        EXISTS (
            SELECT 1 FROM unnest(\(condition.add(prefixes))) AS asked (tag)
            WHERE device.locale = tag OR (device.locale > tag || '-' AND device.locale < tag || '.')
        )
        """
    }

    private static func column(_ field: AudienceField, _ condition: inout AudienceCondition) -> String {
        AudienceColumn.comparable(field) { condition.add($0) }
    }

    private static func sql(_ comparison: ComparisonOperator) -> String {
        switch comparison {
        case .equal: "="
        case .notEqual: "<>"
        case .less: "<"
        case .lessOrEqual: "<="
        case .greater: ">"
        case .greaterOrEqual: ">="
        }
    }
}

/// An audience as SQL over the table `device`: the text is made of constants of ours, every value is a parameter.
struct AudienceCondition {
    var sql = "TRUE"
    /// For `$1` and on.
    private(set) var values: [any PostgresValue] = []

    /// Returns the placeholder to write into the text.
    mutating func add(_ value: Int64) -> String { place(value, "bigint") }

    /// A text that a statement makes has the database's collation otherwise. In brackets: `BETWEEN` takes no `COLLATE`.
    mutating func add(_ value: String) -> String {
        "(\(place(StorableText.without(value), "text")) COLLATE \"C\")"
    }

    mutating func add(_ values: [Int64]) -> String { place(values, "bigint[]") }

    mutating func add(_ values: [String]) -> String { place(values.map { StorableText.without($0) }, "text[]") }

    mutating func add(_ value: AudienceOperand, of field: AudienceField) -> String {
        switch value {
        case .text(let text): add(AudienceColumn.folded(text, of: field))
        case .boolean(let flag): place(flag, "boolean")
        case .time(let milliseconds): add(milliseconds)
        case .number(let number): place(number, "double precision")
        }
    }

    mutating func add(_ values: [AudienceOperand], of field: AudienceField) -> String {
        switch field.kind {
        case .text, .locale, .version:
            add(
                values.compactMap {
                    if case .text(let text) = $0 { AudienceColumn.folded(text, of: field) } else { nil }
                })
        case .boolean: place(values.compactMap { if case .boolean(let flag) = $0 { flag } else { nil } }, "boolean[]")
        case .time: place(values.compactMap { if case .time(let time) = $0 { time } else { nil } }, "bigint[]")
        case .number:
            place(values.compactMap { if case .number(let number) = $0 { number } else { nil } }, "double precision[]")
        }
    }

    private mutating func place(_ value: some PostgresValue, _ type: String) -> String {
        values.append(value)
        return "$\(values.count)::\(type)"
    }
}
