import GRDB
import Model
import Store

/// Compiles an audience expression. Two-valued: a comparison with a field the device does not have is false, so that
/// `not` of it is true. Dynamic segments are written out where they are named.
struct AudienceCompiler {
    /// SQLite's parser holds at most 100 symbols it has not reduced, and its expressions may be 1,000 levels deep. With
    /// chains of 30 in a pair of brackets, which cost 3 symbols, this much nesting stays within both.
    private static let symbolsMax = 60
    private static let symbolsPerGroup = 3
    private static let chainMax = 30

    private let db: Database
    private let now: Timestamp

    /// Segments are looked up in `db`, times are relative to `now`.
    init(_ db: Database, now: Timestamp) {
        self.db = db
        self.now = now
    }

    /// Throws ``StoreError/noSuchSegment(_:suggestion:)``, `segmentCycle`, `segmentsTooDeep`, `unsuitableValue` and
    /// `audienceTooLarge`.
    func condition(for expression: AudienceExpression) throws -> AudienceCondition {
        var parameters = AudienceParameters()
        let sql = try compile(expression, symbols: 0, &parameters)
        return AudienceCondition(sql: sql, arguments: parameters.values)
    }

    /// Returns what needs no further brackets: an atom, a group, or `NOT` of one.
    private func compile(
        _ expression: AudienceExpression, symbols: Int, _ parameters: inout AudienceParameters
    ) throws -> String {
        try parameters.countPart()
        guard symbols <= Self.symbolsMax else { throw StoreError.audienceTooLarge }
        switch expression {
        case .everyone: return "TRUE"
        case .all(let parts): return try join(parts, "AND", symbols, &parameters) ?? "TRUE"
        case .any(let parts): return try join(parts, "OR", symbols, &parameters) ?? "FALSE"
        case .not(let part): return "NOT \(try compile(part, symbols: symbols + 1, &parameters))"
        case .segment(let name): return try segment(name, symbols, &parameters)
        case .tag(let name):
            let tag = parameters.add(name)
            return "EXISTS (SELECT 1 FROM tag WHERE tag.device_id = device.id AND tag.name = \(tag))"
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
            let list = StoredJSON.array(try values.map { try AudienceOperand($0, for: field).json })
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
        return Self.grouped(parts, "OR") ?? "FALSE"
    }

    /// A static one is one lookup table per statement; the planner may also walk it in order of device.
    private func segment(_ name: String, _ symbols: Int, _ parameters: inout AudienceParameters) throws -> String {
        let entry = try parameters.entry(ofSegment: name, in: SegmentCatalog(db))
        if let expression = entry.expression {
            try parameters.enter(segment: name)
            defer { parameters.leaveSegment() }
            return try compile(expression, symbols: symbols, &parameters)
        }
        return "(device.id IN (SELECT device_id FROM segment_member WHERE segment_id = \(parameters.add(entry.id))))"
    }

    private func join(
        _ parts: [AudienceExpression], _ keyword: String, _ symbols: Int, _ parameters: inout AudienceParameters
    ) throws -> String? {
        var inside = symbols + Self.symbolsPerGroup
        var groups = parts.count
        while groups > Self.chainMax {
            inside += Self.symbolsPerGroup
            groups = (groups + Self.chainMax - 1) / Self.chainMax
        }
        return Self.grouped(try parts.map { try compile($0, symbols: inside, &parameters) }, keyword)
    }

    /// `((a OR b OR c) OR (d OR e OR f))`: a chain is as deep as it is long.
    private static func grouped(_ parts: [String], _ keyword: String) -> String? {
        guard !parts.isEmpty else { return nil }
        var parts = parts
        repeat {
            parts = stride(from: 0, to: parts.count, by: chainMax).map { start in
                let chain = parts[start..<min(start + chainMax, parts.count)]
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

extension AudienceField.Kind {
    fileprivate var isNumeric: Bool {
        switch self {
        case .boolean, .time, .number: true
        case .text, .locale, .version: false
        }
    }
}

/// An audience as SQL over the table `device`: the text is made of constants of ours, every value is a parameter.
struct AudienceCondition {
    var sql: String
    var arguments: [String: DatabaseValue]
}

/// What is gathered while an audience is compiled: the values under names of ours (`:p0`, `:p1`, and so on), and which
/// segments it is inside of.
struct AudienceParameters {
    private(set) var values: [String: DatabaseValue] = [:]
    private var parts = 0
    private var openSegments: [String] = []
    private var segments: [String: SegmentEntry] = [:]

    /// Returns the placeholder to write into the text.
    mutating func add(_ value: some DatabaseValueConvertible) -> String {
        let name = "p\(values.count)"
        values[name] = value.databaseValue
        return ":\(name)"
    }

    /// A few segments that name each other twice would be written out to an endless text.
    mutating func countPart() throws {
        parts += 1
        guard parts <= StoreLimits.audiencePartsMax, values.count <= StoreLimits.audienceParametersMax else {
            throw StoreError.audienceTooLarge
        }
    }

    /// Each segment is looked up once.
    mutating func entry(ofSegment name: String, in catalog: SegmentCatalog) throws -> SegmentEntry {
        if let known = segments[name] { return known }
        let entry = try catalog.entry(of: name)
        segments[name] = entry
        return entry
    }

    /// Throws when the segment is open already, or when too many are.
    mutating func enter(segment name: String) throws {
        if let start = openSegments.firstIndex(of: name) {
            throw StoreError.segmentCycle(Array(openSegments[start...]) + [name])
        }
        openSegments.append(name)
        guard openSegments.count <= StoreLimits.segmentDepthMax else { throw StoreError.segmentsTooDeep(openSegments) }
    }

    mutating func leaveSegment() {
        openSegments.removeLast()
    }
}

/// A literal in the form its column is stored in.
struct AudienceOperand {
    let value: DatabaseValue
    /// The same as an element of a list.
    let json: String

    /// Throws ``StoreError/unsuitableValue(field:value:)`` for a literal of another kind than the field's.
    init(_ literal: AudienceValue, for field: AudienceField) throws {
        switch (field.kind, literal) {
        case (.text, .text(let text)), (.locale, .text(let text)): self.init(text)
        case (.locale, .locale(let tag)): self.init(tag.description)
        case (.version, .version(let version)): self.init(version.sortKey)
        case (.boolean, .boolean(let flag)): self.init(flag ? Int64(1) : 0)
        case (.time, .time(let moment)): self.init(moment.milliseconds)
        case (.number, .number(let number)) where number.isFinite: self.init(number)
        default: throw StoreError.unsuitableValue(field: field.name, value: "\(literal)")
        }
    }

    private init(_ value: some DatabaseValueConvertible & CustomStringConvertible) {
        self.value = value.databaseValue
        json = value.description
    }
}
