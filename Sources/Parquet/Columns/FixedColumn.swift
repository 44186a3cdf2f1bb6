/// Encodes a column of values of fixed width, in plain pages.
struct FixedColumn<Value: PlainValue> {
    private let column: ParquetColumn
    private let pageBits: Int
    private let levelBits: Int
    private let compress: Compressor?
    private var pages: ChunkPages
    private var levels: DefinitionLevels
    private var values: [Value] = []
    private var range = ValueRange<Value>()
    private var nullCount = 0

    init(_ column: ParquetColumn, _ options: ParquetOptions, _ compress: Compressor?) {
        self.column = column
        self.compress = compress
        levelBits = column.isNullable ? 1 : 0
        pageBits = 8 * (options.pageBytes - DefinitionLevels.overhead)
        pages = ChunkPages(column, compress)
        levels = DefinitionLevels(isNullable: column.isNullable)
    }

    var bufferedBytes: Int { pages.bytes.count + values.count * MemoryLayout<Value>.stride + levels.count }

    mutating func append(_ values: ParquetValues, rows: Range<Int>) throws(ParquetError) {
        guard let batch = Value.values(of: values) else { return }
        for row in rows {
            if isPageFull { try flush() }
            guard let value = batch[row] else {
                levels.append(isPresent: false)
                continue
            }
            levels.append(isPresent: true)
            self.values.append(value)
            range.insert(value)
        }
    }

    /// Whether another value would pass the limit of a page.
    private var isPageFull: Bool {
        (values.count + 1) * Value.bitWidth + (levels.count + 1) * levelBits > pageBits
    }

    mutating func finishChunk() throws(ParquetError) -> ColumnChunk {
        try flush()
        let statistics = ColumnStatistics(nullCount: nullCount, lowest: range.lowestBytes, highest: range.highestBytes)
        let chunk = ColumnChunk(column, pages, statistics, isCompressed: compress != nil)
        pages = ChunkPages(column, compress)
        range = ValueRange()
        nullCount = 0
        return chunk
    }

    private mutating func flush() throws(ParquetError) {
        guard levels.count > 0 else { return }
        var body: [UInt8] = []
        levels.append(0..<levels.count, to: &body)
        Value.append(values, to: &body)
        try pages.appendData(body, encoding: .plain, rows: levels.count)
        nullCount += levels.nullCount
        levels.removeAll()
        values.removeAll(keepingCapacity: true)
    }
}

/// The lowest and the highest of some values.
struct ValueRange<Value: PlainValue> {
    private var lowest: Value?
    private var highest: Value?

    init() {}

    mutating func insert(_ value: Value) {
        guard value.isOrdered else { return }
        guard let lowest, let highest else {
            lowest = value
            highest = value
            return
        }
        if value.precedes(lowest) { self.lowest = value }
        if highest.precedes(value) { self.highest = value }
    }

    var lowestBytes: [UInt8]? { lowest.map { Self.bytes($0.asLowest) } }
    var highestBytes: [UInt8]? { highest.map { Self.bytes($0.asHighest) } }

    private static func bytes(_ value: Value) -> [UInt8] {
        var bytes: [UInt8] = []
        Value.append([value], to: &bytes)
        return bytes
    }
}
