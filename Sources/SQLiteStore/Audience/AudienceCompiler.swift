import GRDB
import Model
import RelationalStore
import Store

/// Says an audience in SQL over the table `device`.
struct AudienceCompiler {
    private let db: Database
    private let now: Timestamp

    /// Segments are looked up in `db`, times are relative to `now`.
    init(_ db: Database, now: Timestamp) {
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
        var parameters = AudienceParameters()
        let sql = Self.sql(try resolver.resolve(expression), &parameters)
        return AudienceCondition(sql: sql, arguments: parameters.values)
    }

    /// Returns what needs no further brackets: an atom, a group, or `NOT` of one.
    private static func sql(_ audience: ResolvedAudience, _ parameters: inout AudienceParameters) -> String {
        switch audience {
        case .everyone: return "TRUE"
        case .nobody: return "FALSE"
        case .all(let parts): return grouped(parts.map { sql($0, &parameters) }, "AND") ?? "TRUE"
        case .any(let parts): return grouped(parts.map { sql($0, &parameters) }, "OR") ?? "FALSE"
        case .not(let part): return "NOT \(sql(part, &parameters))"
        case .member(let segment):
            // One lookup table per statement; the planner may also walk it in order of device.
            let id = parameters.add(segment)
            return "(device.id IN (SELECT device_id FROM segment_member WHERE segment_id = \(id)))"
        case .tagged(let name):
            let tag = parameters.add(name)
            return "EXISTS (SELECT 1 FROM tag WHERE tag.device_id = device.id AND tag.name = \(tag))"
        default: return "((\(predicate(audience, &parameters))) IS TRUE)"
        }
    }

    private static func predicate(_ audience: ResolvedAudience, _ parameters: inout AudienceParameters) -> String {
        switch audience {
        case .compared(let field, let comparison, let value):
            return "\(column(field, &parameters)) \(sql(comparison)) \(parameters.add(value.stored))"
        case .between(let field, let low, let high):
            let column = column(field, &parameters)
            return "\(column) BETWEEN \(parameters.add(low.stored)) AND \(parameters.add(high.stored))"
        case .oneOf(let field, let values):
            let list = parameters.add(StoredJSON.array(values.map(\.listed)))
            // Elements travel as texts; numbers are read back by the comparison with a column of numbers.
            let element = field.kind.isNumeric ? "CAST(value AS REAL)" : "value"
            return "\(column(field, &parameters)) IN (SELECT \(element) FROM json_each(\(list)))"
        case .locales(let conditions):
            return grouped(conditions.map { AudienceLocale.sql($0, &parameters) }, "OR") ?? "FALSE"
        case .isNull(let field):
            return "\(AudienceColumn.stored(field) { parameters.add($0) }) IS NULL"
        case .everyone, .nobody, .all, .any, .not, .member, .tagged: return "FALSE"
        }
    }

    private static func column(_ field: AudienceField, _ parameters: inout AudienceParameters) -> String {
        AudienceColumn.comparable(field) { parameters.add($0) }
    }

    /// `((a OR b OR c) OR (d OR e OR f))`: a chain is as deep as it is long.
    fileprivate static func grouped(_ parts: [String], _ keyword: String) -> String? {
        guard !parts.isEmpty else { return nil }
        var parts = parts
        repeat {
            parts = stride(from: 0, to: parts.count, by: AudienceResolver.chainMax).map { start in
                let chain = parts[start..<min(start + AudienceResolver.chainMax, parts.count)]
                return "(" + chain.joined(separator: " \(keyword) ") + ")"
            }
        } while parts.count > 1
        return parts.first
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

/// A ``Store/LocaleCondition`` in SQL.
private enum AudienceLocale {
    static func sql(_ condition: LocaleCondition, _ parameters: inout AudienceParameters) -> String {
        // The language alone lets all other devices go by after one comparison.
        let language = begins(with: condition.language, &parameters)
        guard !condition.isPlain else { return language }
        var parts = [language]
        if condition.prefixes != [condition.language] {
            let prefixes = condition.prefixes.map { begins(with: $0, &parameters) }
            parts.append(AudienceCompiler.grouped(prefixes, "OR") ?? "FALSE")
        }
        if !condition.exceptions.isEmpty {
            let exceptions = condition.exceptions.map { begins(with: $0, &parameters) }
            parts.append("NOT " + (AudienceCompiler.grouped(exceptions, "OR") ?? "FALSE"))
        }
        if condition.isWithoutScripts { parts.append("NOT \(namesScript(condition.language, &parameters))") }
        return "(" + parts.joined(separator: " AND ") + ")"
    }

    /// `.` is the character after `-`.
    private static func begins(with prefix: String, _ parameters: inout AudienceParameters) -> String {
        let prefix = parameters.add(prefix)
        return "(device.locale = \(prefix) OR (device.locale > \(prefix) || '-' AND device.locale < \(prefix) || '.'))"
    }

    private static func namesScript(_ language: String, _ parameters: inout AudienceParameters) -> String {
        let letter = "[A-Za-z]"
        let pattern = parameters.add(language + "-" + String(repeating: letter, count: 4))
        return "(device.locale GLOB \(pattern) OR device.locale GLOB \(pattern) || '-*')"
    }
}

extension AudienceField.Kind {
    fileprivate var isNumeric: Bool {
        switch self {
        case .boolean, .time, .number: true
        case .text, .locale, .version: false
        }
    }
}

extension AudienceOperand {
    fileprivate var stored: DatabaseValue {
        switch self {
        case .text(let text): text.databaseValue
        case .boolean(let flag): (flag ? 1 : 0).databaseValue
        case .time(let milliseconds): milliseconds.databaseValue
        case .number(let number): number.databaseValue
        }
    }

    /// As an element of a list.
    fileprivate var listed: String {
        switch self {
        case .text(let text): text
        case .boolean(let flag): flag ? "1" : "0"
        case .time(let milliseconds): "\(milliseconds)"
        case .number(let number): "\(number)"
        }
    }
}

/// An audience as SQL over the table `device`: the text is made of constants of ours, every value is a parameter.
struct AudienceCondition {
    var sql: String
    var arguments: [String: DatabaseValue]
}

/// The values of a statement that is put together, under names of ours (`:p0`, `:p1`, and so on).
struct AudienceParameters {
    private(set) var values: [String: DatabaseValue] = [:]

    /// Returns the placeholder to write into the text.
    mutating func add(_ value: some DatabaseValueConvertible) -> String {
        let name = "p\(values.count)"
        values[name] = value.databaseValue
        return ":\(name)"
    }
}
