/// Collects the rows of one column until its chunk of the row group is complete. An enumeration, and not a protocol, so
/// that the compiler specialises the code of each type of values.
enum ColumnEncoder {
    case booleans(FixedColumn<Bool>)
    case int32s(FixedColumn<Int32>)
    case int64s(FixedColumn<Int64>)
    case doubles(FixedColumn<Double>)
    case bytes(ByteColumn)
    /// The column is being changed, or its change has failed.
    case moved

    init(_ column: ParquetColumn, _ options: ParquetOptions, _ compress: Compressor?, seed: UInt64) {
        switch column.kind {
        case .boolean: self = .booleans(FixedColumn(column, options, compress))
        case .int32: self = .int32s(FixedColumn(column, options, compress))
        case .int64, .timestamp, .decimal: self = .int64s(FixedColumn(column, options, compress))
        case .double: self = .doubles(FixedColumn(column, options, compress))
        case .string, .enumeration, .bytes: self = .bytes(ByteColumn(column, options, compress, seed: seed))
        }
    }

    /// The bytes in memory for the current row group.
    var bufferedBytes: Int {
        switch self {
        case .booleans(let column): column.bufferedBytes
        case .int32s(let column): column.bufferedBytes
        case .int64s(let column): column.bufferedBytes
        case .doubles(let column): column.bufferedBytes
        case .bytes(let column): column.bufferedBytes
        case .moved: 0
        }
    }

    /// Appends some rows of a batch, whose values the column has checked.
    mutating func append(_ values: ParquetValues, rows: Range<Int>) throws(ParquetError) {
        switch moved() {
        case .booleans(var column):
            try column.append(values, rows: rows)
            self = .booleans(column)
        case .int32s(var column):
            try column.append(values, rows: rows)
            self = .int32s(column)
        case .int64s(var column):
            try column.append(values, rows: rows)
            self = .int64s(column)
        case .doubles(var column):
            try column.append(values, rows: rows)
            self = .doubles(column)
        case .bytes(var column):
            try column.append(values, rows: rows)
            self = .bytes(column)
        case .moved: throw .closed
        }
    }

    /// Returns the chunk and starts the next one.
    mutating func finishChunk() throws(ParquetError) -> ColumnChunk {
        let chunk: ColumnChunk
        switch moved() {
        case .booleans(var column):
            chunk = try column.finishChunk()
            self = .booleans(column)
        case .int32s(var column):
            chunk = try column.finishChunk()
            self = .int32s(column)
        case .int64s(var column):
            chunk = try column.finishChunk()
            self = .int64s(column)
        case .doubles(var column):
            chunk = try column.finishChunk()
            self = .doubles(column)
        case .bytes(var column):
            chunk = try column.finishChunk()
            self = .bytes(column)
        case .moved: throw .closed
        }
        return chunk
    }

    /// Returns the encoder as the only owner of its buffers, so that a change does not copy them.
    private mutating func moved() -> ColumnEncoder {
        let encoder = self
        self = .moved
        return encoder
    }
}
