import Model
import RelationalStore
import Store

/// Compiles an audience into SQLite's SQL over the table `device`.
enum AudienceCompiler {
    /// Returns SQL that needs no further brackets: an atom, a group, or `NOT` of one.
    static func sql(_ audience: ResolvedAudience, _ condition: inout AudienceCondition) -> String {
        switch audience {
        case .everyone: return "TRUE"
        case .noDevice: return "FALSE"
        case .all(let parts): return grouped(parts.map { sql($0, &condition) }, "AND") ?? "TRUE"
        case .any(let parts): return grouped(parts.map { sql($0, &condition) }, "OR") ?? "FALSE"
        case .not(let part): return "NOT \(sql(part, &condition))"
        case .member(let segment):
            // SQLite evaluates this subquery once per statement. The planner may also use it to visit the devices in
            // order of id.
            let id = condition.add(segment)
            return "(device.id IN (SELECT device_id FROM segment_member WHERE segment_id = \(id)))"
        case .tagged(let name):
            let tag = condition.add(name)
            return "EXISTS (SELECT 1 FROM tag WHERE tag.device_id = device.id AND tag.name = \(tag))"
        default: return "((\(predicate(audience, &condition))) IS TRUE)"
        }
    }

    private static func predicate(_ audience: ResolvedAudience, _ condition: inout AudienceCondition) -> String {
        switch audience {
        case .compared(let field, let comparison, let value):
            return "\(column(field, &condition)) \(comparison.sql) \(condition.add(value.stored))"
        case .between(let field, let low, let high):
            let column = column(field, &condition)
            return "\(column) BETWEEN \(condition.add(low.stored)) AND \(condition.add(high.stored))"
        case .oneOf(let field, let values):
            let list = condition.add(values.map(\.listed))
            // Elements are passed as texts. For a column of numbers, they are cast back to numbers.
            let element = field.kind.isNumeric ? "CAST(value AS REAL)" : "value"
            return "\(column(field, &condition)) IN (SELECT \(element) FROM json_each(\(list)))"
        case .locales(let conditions):
            return grouped(conditions.map { AudienceLocale.sql($0, &condition) }, "OR") ?? "FALSE"
        case .isNull(let field):
            return "\(DeviceColumn(.sqlite).stored(field) { condition.add($0) }) IS NULL"
        case .everyone, .noDevice, .all, .any, .not, .member, .tagged: return "FALSE"
        }
    }

    private static func column(_ field: AudienceField, _ condition: inout AudienceCondition) -> String {
        DeviceColumn(.sqlite).comparable(field) { condition.add($0) }
    }

    /// Groups the parts as `((a OR b OR c) OR (d OR e OR f))`. SQLite nests a chain of n parts n levels deep, and
    /// limits the depth.
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
}

/// Compiles a ``Store/LocaleCondition`` into SQL.
private enum AudienceLocale {
    static func sql(_ asked: LocaleCondition, _ condition: inout AudienceCondition) -> String {
        // The language comes first, so that one comparison excludes the devices of all other languages.
        let language = begins(with: asked.language, &condition)
        guard !asked.isPlain else { return language }
        var parts = [language]
        if asked.prefixes != [asked.language] {
            let prefixes = asked.prefixes.map { begins(with: $0, &condition) }
            parts.append(AudienceCompiler.grouped(prefixes, "OR") ?? "FALSE")
        }
        if !asked.exceptions.isEmpty {
            let exceptions = asked.exceptions.map { begins(with: $0, &condition) }
            parts.append("NOT " + (AudienceCompiler.grouped(exceptions, "OR") ?? "FALSE"))
        }
        if asked.isWithoutScripts { parts.append("NOT \(namesScript(asked.language, &condition))") }
        return "(" + parts.joined(separator: " AND ") + ")"
    }

    /// Returns the condition that a locale is the prefix, or begins with the prefix and `-`. The upper bound uses
    /// `.`, the character after `-`.
    private static func begins(with prefix: String, _ condition: inout AudienceCondition) -> String {
        let prefix = condition.add(prefix)
        return "(device.locale = \(prefix) OR (device.locale > \(prefix) || '-' AND device.locale < \(prefix) || '.'))"
    }

    private static func namesScript(_ language: String, _ condition: inout AudienceCondition) -> String {
        let letter = "[A-Za-z]"
        let pattern = condition.add(language + "-" + String(repeating: letter, count: 4))
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
    fileprivate var stored: any SQLValue {
        switch self {
        case .text(let text): text
        case .boolean(let flag): flag
        case .time(let milliseconds): milliseconds
        case .number(let number): number
        }
    }
}
