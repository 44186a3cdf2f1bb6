import GRDB
import Model

/// Compiles an audience expression. Two-valued: a comparison with a field the device does not have is false, so that
/// `not` of it is true.
struct AudienceCompiler {
    /// SQLite refuses expressions deeper than 1,000; ours throw well before, whatever the leaves.
    private static let depthMax = 900
    private static let leafDepth = 12

    private let db: Database
    private let now: Timestamp

    /// Segments are looked up in `db`, times are relative to `now`.
    init(_ db: Database, now: Timestamp) {
        self.db = db
        self.now = now
    }

    /// Throws ``StoreError/noSuchSegment(_:suggestion:)``, `unsuitableValue` and `audienceTooLarge`.
    func condition(for expression: AudienceExpression) throws -> AudienceCondition {
        var parameters = AudienceParameters()
        let sql = try compile(expression, depth: Self.leafDepth, &parameters)
        return AudienceCondition(sql: sql, arguments: parameters.values)
    }

    private func compile(
        _ expression: AudienceExpression, depth: Int, _ parameters: inout AudienceParameters
    ) throws -> String {
        guard depth < Self.depthMax else { throw StoreError.audienceTooLarge }
        switch expression {
        case .everyone: return "TRUE"
        case .all(let parts): return try join(parts, "AND", empty: "TRUE", depth, &parameters)
        case .any(let parts): return try join(parts, "OR", empty: "FALSE", depth, &parameters)
        case .not(let part): return "(NOT \(try compile(part, depth: depth + 1, &parameters)))"
        case .segment(let name): return try segment(name, &parameters)
        case .tag(let name):
            return """
                EXISTS (SELECT 1 FROM tag WHERE tag.device_id = device.id AND tag.name = \(parameters.add(name)))
                """
        default: return "((\(try predicate(expression, &parameters))) IS TRUE)"
        }
    }

    private func predicate(_ expression: AudienceExpression, _ parameters: inout AudienceParameters) throws -> String {
        switch expression {
        case .comparison(let field, let comparison, let value):
            let stored = try AudienceOperand(value, for: field)
            return "\(column(field, &parameters)) \(Self.sql(comparison)) \(parameters.add(stored.value))"
        case .between(let field, let low, let high):
            let low = try AudienceOperand(low, for: field)
            let high = try AudienceOperand(high, for: field)
            return
                "\(column(field, &parameters)) BETWEEN \(parameters.add(low.value)) AND \(parameters.add(high.value))"
        case .oneOf(.locale, let ranges): return try locales(ranges, &parameters)
        case .oneOf(let field, let values):
            let list = JSONText.array(try values.map { try AudienceOperand($0, for: field).json })
            // Elements travel as texts; numbers are read back by the comparison with a column of numbers.
            let element = field.kind.isNumeric ? "CAST(value AS REAL)" : "value"
            return "\(column(field, &parameters)) IN (SELECT \(element) FROM json_each(\(parameters.add(list))))"
        case .isNull(let field):
            return "\(AudienceColumn.stored(field) { parameters.add($0) }) IS NULL"
        case .within(let field, let duration):
            guard field.kind == .time else { throw StoreError.unsuitableValue(field: field.name, value: "a duration") }
            return "\(column(field, &parameters)) >= \(parameters.add((now - duration).milliseconds))"
        case .everyone, .all, .any, .not, .segment, .tag: return "FALSE"
        }
    }

    private func column(_ field: AudienceField, _ parameters: inout AudienceParameters) -> String {
        AudienceColumn.comparable(field) { parameters.add($0) }
    }

    /// Language ranges: the tag itself, or the tag and `-` as a prefix (`.` is the character after `-`).
    private func locales(_ ranges: [AudienceValue], _ parameters: inout AudienceParameters) throws -> String {
        let parts = try ranges.map { range in
            let tag = parameters.add(try AudienceOperand(range, for: .locale).value)
            return "(device.locale = \(tag) OR (device.locale > \(tag) || '-' AND device.locale < \(tag) || '.'))"
        }
        return Self.balanced(parts[...], "OR") ?? "FALSE"
    }

    /// One lookup table per statement; the planner may also walk it in order of device.
    private func segment(_ name: String, _ parameters: inout AudienceParameters) throws -> String {
        let id = try SegmentCatalog(db).id(of: name)
        return """
            device.id IN (SELECT device_id FROM segment_member WHERE segment_id = \(parameters.add(id)))
            """
    }

    private func join(
        _ parts: [AudienceExpression], _ keyword: String, empty: String, _ depth: Int,
        _ parameters: inout AudienceParameters
    ) throws -> String {
        let levels = Int.bitWidth - parts.count.leadingZeroBitCount + 1
        let compiled = try parts.map { try compile($0, depth: depth + levels, &parameters) }
        return Self.balanced(compiled[...], keyword) ?? empty
    }

    /// `((a OR b) OR (c OR d))`: SQLite counts the depth of a flat chain by its length.
    private static func balanced(_ parts: ArraySlice<String>, _ keyword: String) -> String? {
        guard parts.count > 1 else { return parts.first }
        let middle = parts.startIndex + parts.count / 2
        guard let left = balanced(parts[..<middle], keyword), let right = balanced(parts[middle...], keyword) else {
            return nil
        }
        return "(\(left) \(keyword) \(right))"
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

extension AudienceField.Kind {
    fileprivate var isNumeric: Bool {
        switch self {
        case .boolean, .time, .number: true
        case .text, .locale, .version: false
        }
    }
}
