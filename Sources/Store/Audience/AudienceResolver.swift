package import Model

/// An audience with its segments expanded, and its literals in the form in which their columns are stored. The result
/// is the same for every store, and each store can easily express it in its own language.
///
/// The logic is two-valued. A comparison with a field that the device does not have is false, so its `not` is true.
package indirect enum ResolvedAudience: Hashable, Sendable {
    case everyone
    case noDevice
    /// At least two parts.
    case all([ResolvedAudience])
    case any([ResolvedAudience])
    case not(ResolvedAudience)
    /// A static segment, whose members are stored.
    case member(segment: Int64)
    case tagged(String)
    case compared(AudienceField, ComparisonOperator, AudienceOperand)
    case between(AudienceField, AudienceOperand, AudienceOperand)
    case oneOf(AudienceField, [AudienceOperand])
    /// At least one of the conditions must hold.
    case locales([LocaleCondition])
    case isNull(AudienceField)
}

/// A literal in the form its column is stored in.
package enum AudienceOperand: Hashable, Sendable {
    /// A version is represented by its sort key.
    case text(String)
    case boolean(Bool)
    /// In milliseconds.
    case time(Int64)
    case number(Double)

    /// Throws ``StoreError/unsuitableValue(field:value:)`` for a literal of another kind than the field's.
    init(_ literal: AudienceValue, for field: AudienceField) throws {
        switch (field.kind, literal) {
        case (.text, .text(let text)), (.locale, .text(let text)): self = .text(text)
        case (.locale, .locale(let tag)): self = .text(tag.description)
        case (.version, .version(let version)): self = .text(version.sortKey)
        case (.boolean, .boolean(let flag)): self = .boolean(flag)
        case (.time, .time(let moment)): self = .time(moment.milliseconds)
        case (.number, .number(let number)) where number.isFinite: self = .number(number)
        default: throw StoreError.unsuitableValue(field: field.name, value: "\(literal)")
        }
    }
}

/// An entry of the segment catalogue.
package struct SegmentEntry: Sendable {
    package var id: Int64
    /// `nil` for a static segment, whose members are stored.
    package var expression: AudienceExpression?

    package init(id: Int64, expression: AudienceExpression?) {
        self.id = id
        self.expression = expression
    }
}

/// Expands an audience expression: each dynamic segment is replaced by its expression. The size limits are the same for
/// all stores, so every store refuses the same audiences.
package struct AudienceResolver {
    private static let segmentDepthMax = 10
    /// The maximum number of values in a statement. A database compares each value with all earlier ones. Preparing
    /// this many values takes about a second. Ten times as many take more than a minute, which cannot be interrupted.
    private static let operandsMax = 4_000
    /// The number of values in a comparison with a locale prefix.
    private static let operandsPerPrefix = 3
    private static let partsMax = 50_000
    /// The maximum nesting. SQLite's parser holds at most 100 unreduced symbols, and its expressions may be 1,000
    /// levels deep. Brackets around a chain of ``chainMax`` cost 3 symbols, so this nesting stays within both limits.
    /// Every store uses the same limit, so that an audience is valid in all stores or in none.
    private static let symbolsMax = 60
    private static let symbolsPerGroup = 3
    /// The maximum number of `and` or `or` parts that are written side by side.
    package static let chainMax = 30

    private let now: Timestamp
    private let catalogue: (String) throws -> SegmentEntry
    private var parts = 0
    private var operands = 0
    private var openSegments: [String] = []
    private var segments: [String: SegmentEntry] = [:]

    /// - Parameters:
    ///   - now: the moment from which `within` counts back.
    ///   - catalogue: looks up a segment by its name; throws ``StoreError/noSuchSegment(_:suggestion:)``.
    package init(now: Timestamp, catalogue: @escaping (String) throws -> SegmentEntry) {
        self.now = now
        self.catalogue = catalogue
    }

    /// Throws ``StoreError/noSuchSegment(_:suggestion:)``, `segmentCycle`, `segmentsTooDeep`, `unsuitableValue` and
    /// `audienceTooLarge`.
    package mutating func resolve(_ expression: AudienceExpression) throws -> ResolvedAudience {
        try resolve(expression, symbols: 0)
    }

    private mutating func resolve(_ expression: AudienceExpression, symbols: Int) throws -> ResolvedAudience {
        guard symbols <= Self.symbolsMax else { throw StoreError.audienceTooLarge }
        // Segments that name each other twice double with each level, so bound the number of parts.
        parts += 1
        guard parts <= Self.partsMax else { throw StoreError.audienceTooLarge }
        switch expression {
        case .everyone: return .everyone
        case .all(let inner): return try several(inner, symbols, ResolvedAudience.all)
        case .any(let inner): return try several(inner, symbols, ResolvedAudience.any)
        case .not(let inner): return .not(try resolve(inner, symbols: symbols + 1))
        case .segment(let name): return try segment(name, symbols)
        case .tag(let name):
            try spend(1)
            return .tagged(name)
        case .comparison(let field, let comparison, let value):
            return .compared(field, comparison, try operand(value, for: field))
        case .between(let field, let low, let high):
            return .between(field, try operand(low, for: field), try operand(high, for: field))
        case .oneOf(.locale, let ranges):
            let conditions: [LocaleCondition] = try ranges.flatMap { range -> [LocaleCondition] in
                guard case .text(let tag) = try AudienceOperand(range, for: .locale) else { return [] }
                return LocaleTag(tag).map(LocaleCondition.conditions) ?? [
                    LocaleCondition(language: tag, prefixes: [tag])
                ]
            }
            var known: Set<LocaleCondition> = []
            let distinct = conditions.filter { known.insert($0).inserted }
            try spend(Self.operandsPerPrefix * distinct.reduce(0) { $0 + $1.operands })
            return .locales(distinct)
        case .oneOf(let field, let values):
            try spend(1)
            return .oneOf(field, try values.map { try AudienceOperand($0, for: field) })
        case .isNull(let field):
            try spend(1)
            return .isNull(field)
        case .within(let field, let duration):
            guard field.kind == .time else { throw StoreError.unsuitableValue(field: field.name, value: "a duration") }
            try spend(1)
            return .compared(field, .greaterOrEqual, .time((now - duration).milliseconds))
        }
    }

    /// An empty group selects no device, even with `and`. An audience of all devices must be written explicitly.
    private mutating func several(
        _ inner: [AudienceExpression], _ symbols: Int, _ joined: ([ResolvedAudience]) -> ResolvedAudience
    ) throws -> ResolvedAudience {
        var inside = symbols + Self.symbolsPerGroup
        var groups = inner.count
        while groups > Self.chainMax {
            inside += Self.symbolsPerGroup
            groups = (groups + Self.chainMax - 1) / Self.chainMax
        }
        var resolved: [ResolvedAudience] = []
        var known: Set<ResolvedAudience> = []
        for part in inner {
            let part = try resolve(part, symbols: inside)
            // Segments that name each other repeat the same parts: keep each part once.
            for part in Self.parts(of: part, joinedAs: joined) where known.insert(part).inserted {
                resolved.append(part)
            }
        }
        return resolved.isEmpty ? .noDevice : resolved.count == 1 ? resolved[0] : joined(resolved)
    }

    /// Returns the parts of a part that is joined in the same way, so that brackets make no difference.
    private static func parts(
        of part: ResolvedAudience, joinedAs joined: ([ResolvedAudience]) -> ResolvedAudience
    ) -> [ResolvedAudience] {
        switch part {
        case .all(let parts), .any(let parts): joined(parts) == part ? parts : [part]
        default: [part]
        }
    }

    private mutating func spend(_ values: Int) throws {
        operands += values
        guard operands <= Self.operandsMax else { throw StoreError.audienceTooLarge }
    }

    private mutating func operand(_ value: AudienceValue, for field: AudienceField) throws -> AudienceOperand {
        try spend(1)
        return try AudienceOperand(value, for: field)
    }

    private mutating func segment(_ name: String, _ symbols: Int) throws -> ResolvedAudience {
        let entry = try segments[name] ?? catalogue(name)
        segments[name] = entry
        guard let expression = entry.expression else {
            try spend(1)
            return .member(segment: entry.id)
        }
        if let start = openSegments.firstIndex(of: name) {
            throw StoreError.segmentCycle(Array(openSegments[start...]) + [name])
        }
        openSegments.append(name)
        guard openSegments.count <= Self.segmentDepthMax else { throw StoreError.segmentsTooDeep(openSegments) }
        defer { openSegments.removeLast() }
        return try resolve(expression, symbols: symbols)
    }
}
