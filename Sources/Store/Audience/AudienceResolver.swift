package import Model

/// An audience with its segments written out and its literals in the form that their columns are stored in: what is left
/// is the same for every store, and easily said in its own language.
///
/// Two-valued: a comparison with a field the device does not have is false, so that `not` of it is true.
package indirect enum ResolvedAudience: Hashable, Sendable {
    case everyone
    case nobody
    /// Two parts at least.
    case all([ResolvedAudience])
    case any([ResolvedAudience])
    case not(ResolvedAudience)
    /// Of a segment that has its devices on record.
    case member(segment: Int64)
    case tagged(String)
    case compared(AudienceField, ComparisonOperator, AudienceOperand)
    case between(AudienceField, AudienceOperand, AudienceOperand)
    case oneOf(AudienceField, [AudienceOperand])
    /// Any of them.
    case locales([LocaleCondition])
    case isNull(AudienceField)
}

/// A literal in the form its column is stored in.
package enum AudienceOperand: Hashable, Sendable {
    /// A version is its sort key.
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

/// A segment as the catalogue has it.
package struct SegmentEntry: Sendable {
    package var id: Int64
    /// Nil: its devices are on record.
    package var expression: AudienceExpression?

    package init(id: Int64, expression: AudienceExpression?) {
        self.id = id
        self.expression = expression
    }
}

/// Writes an expression out. Dynamic segments are put where they are named; what is too large for any store is refused by
/// all of them alike.
package struct AudienceResolver {
    private static let segmentDepthMax = 10
    /// A database looks for each value of a statement among all earlier ones: so many take about a second to prepare, ten
    /// times as many more than a minute, and nothing can interrupt that.
    private static let operandsMax = 4_000
    /// A prefix of locales is compared with three values.
    private static let operandsPerPrefix = 3
    private static let partsMax = 50_000
    /// SQLite's parser holds at most 100 symbols it has not reduced, and its expressions may be 1,000 levels deep. With
    /// chains of ``chainMax`` in a pair of brackets, which cost 3 symbols, this much nesting stays within both; others take
    /// the same, so that an audience is good for all stores or for none.
    private static let symbolsMax = 60
    private static let symbolsPerGroup = 3
    /// Parts of an `and` or `or` that are written side by side.
    package static let chainMax = 30

    private let now: Timestamp
    private let catalogue: (String) throws -> SegmentEntry
    private var parts = 0
    private var operands = 0
    private var openSegments: [String] = []
    private var segments: [String: SegmentEntry] = [:]

    /// - Parameters:
    ///   - now: what `within` is counted back from.
    ///   - catalogue: a segment by its name; throws ``StoreError/noSuchSegment(_:suggestion:)``.
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
        // A few segments that name each other twice would be written out to an endless text.
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

    /// A group of nothing is nobody, joined by `and`, too: everybody has to be written.
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
            // Segments that name each other say the same over and over: once is enough.
            for part in Self.parts(of: part, joinedAs: joined) where known.insert(part).inserted {
                resolved.append(part)
            }
        }
        return resolved.isEmpty ? .nobody : resolved.count == 1 ? resolved[0] : joined(resolved)
    }

    /// Its own parts where it is joined in the same way, so that brackets make no difference.
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
