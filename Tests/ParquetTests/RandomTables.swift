import Parquet

/// The SplitMix64 generator.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: elements.indices, using: &self)]
    }
}

/// Makes tables of random columns, values, limits and batches.
struct RandomTables {
    private enum Nulls: CaseIterable {
        case none, few, many, all, runs
    }

    private static let texts = [
        "", "a", "é", "e\u{0301}", "日本語", "🎉👩‍👩‍👧", "\u{0}", "line\nend", "\"quoted\"", "'", "ß\u{FEFF}", "Å", "A\u{030A}",
        "\u{10FFFF}", String(repeating: "long ", count: 30),
    ]
    /// The largest count of milliseconds whose microseconds fit 64 bits.
    private static let latest: Int64 = 9_000_000_000_000_000

    var generator: SeededGenerator

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    mutating func table(rows: Int) -> Table {
        let columns = (0..<Int.random(in: 1...14, using: &generator)).map { index in
            ParquetColumn(
                "c\(index) \(generator.pick(["", "ü", ".x", "\"", " "]))", generator.pick(ParquetColumn.Kind.allCases),
                isNullable: Double.random(in: 0..<1, using: &generator) < 0.7)
        }
        var table = Table(columns: columns, values: columns.map { values($0, rows) })
        table.options.rowGroupRows = generator.pick([max(1, rows / 5), rows + 1, max(1, rows), 64, 1000])
        table.options.pageBytes = generator.pick([16, 64, 300, 2000, 1 << 20])
        table.options.dictionaryBytes = generator.pick([0, 32, 200, 1000, 1 << 20])
        table.compress = Bool.random(using: &generator) ? Gzip.stored : nil
        table.batches = (0..<Int.random(in: 0...6, using: &generator)).map { _ in
            Int.random(in: 0...max(1, rows / 2), using: &generator)
        }
        return table
    }

    mutating func values(_ column: ParquetColumn, _ rows: Int) -> ParquetValues {
        let mask = nullMask(column, rows)
        switch column.kind {
        case .boolean:
            let share = generator.pick([0, 0.02, 0.5, 1])
            return .booleans(mask.map { $0 ? nil : Double.random(in: 0..<1, using: &generator) < share })
        case .int32:
            let pool = pool(rows) { Int32.random(in: .min ... .max, using: &$0) } + [.min, .max, 0, -1]
            return .int32s(drawn(mask, pool))
        case .int64:
            let pool = pool(rows) { Int64.random(in: .min ... .max, using: &$0) } + [.min, .max, 0, -1]
            return .int64s(drawn(mask, pool))
        case .timestamp:
            let pool = pool(rows) { Int64.random(in: -Self.latest...Self.latest, using: &$0) } + [0, -1, Self.latest]
            return .int64s(drawn(mask, pool))
        case .decimal:
            let limit: Int64 = 999_999_999_999_999_999
            let pool = pool(rows) { Int64.random(in: -limit...limit, using: &$0) } + [limit, -limit, 0, 1, -1]
            return .int64s(drawn(mask, pool))
        case .double:
            let pool = pool(rows) { Double(bitPattern: UInt64.random(in: .min ... .max, using: &$0)) }
            return .doubles(drawn(mask, pool + (generator.pick([[], Self.oddDoubles, [.nan], [0.0, -0.0]]))))
        case .string, .enumeration:
            return .strings(drawn(mask, pool(rows) { Self.text(&$0) } + (generator.pick([[], Self.texts]))))
        case .bytes:
            return .bytes(drawn(mask, pool(rows) { Self.bytes(&$0) } + [[]]))
        }
    }

    private static let oddDoubles: [Double] = [
        .nan, .infinity, -.infinity, 0.0, -0.0, .leastNonzeroMagnitude, .greatestFiniteMagnitude, -1.5,
    ]

    private static func text(_ generator: inout SeededGenerator) -> String {
        let count = Int.random(in: 0...12, using: &generator)
        let letters = (0..<count).map { _ in generator.pick(Array("abcdefghijklmnopqrstuvwxyzäöü日e\u{0301}")) }
        return String(letters)
    }

    private static func bytes(_ generator: inout SeededGenerator) -> [UInt8] {
        let count = generator.pick([0, 1, 5, 20, 90])
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    /// Returns the values that a column is drawn from: one, a few, or as many as it has rows.
    private mutating func pool<Element>(_ rows: Int, _ make: (inout SeededGenerator) -> Element) -> [Element] {
        let count = generator.pick([1, 3, 20, 300, rows + 1])
        return (0..<count).map { _ in make(&generator) }
    }

    private mutating func drawn<Element>(_ mask: [Bool], _ pool: [Element]) -> [Element?] {
        let repeats = generator.pick([0, 0, 0.9, 0.99])
        var last = generator.pick(pool)
        return mask.map { isNull in
            if Double.random(in: 0..<1, using: &generator) >= repeats { last = generator.pick(pool) }
            return isNull ? nil : last
        }
    }

    private mutating func nullMask(_ column: ParquetColumn, _ rows: Int) -> [Bool] {
        guard column.isNullable else { return Array(repeating: false, count: rows) }
        switch generator.pick(Nulls.allCases) {
        case .none: return Array(repeating: false, count: rows)
        case .few: return (0..<rows).map { _ in Double.random(in: 0..<1, using: &generator) < 0.05 }
        case .many: return (0..<rows).map { _ in Bool.random(using: &generator) }
        case .all: return Array(repeating: true, count: rows)
        case .runs:
            var isNull = false
            return (0..<rows).map { _ in
                if Double.random(in: 0..<1, using: &generator) < 0.05 { isNull.toggle() }
                return isNull
            }
        }
    }
}
