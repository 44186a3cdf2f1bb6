import Parquet
import Testing

/// The bytes of small files, and what the writer refuses. No other program is needed.
struct ParquetWriterTests {
    private struct SinkFault: Error {}

    @Test func `a small file has these bytes`() throws {
        #expect(try ParquetValues.hex(Golden.small().bytes()) == Golden.bytes)
    }

    @Test func `a file without rows has a footer alone`() throws {
        let bytes = try Table(columns: [ParquetColumn("id", .int64)], values: [.int64s([])]).bytes()
        #expect(bytes.prefix(4) == Array("PAR1".utf8)[...] && bytes.suffix(4) == Array("PAR1".utf8)[...])
        let length = bytes.dropLast(4).suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        #expect(bytes.count == length + 12)
        // Version 2, 2 elements of the schema, the first of which is the root.
        let root: [UInt8] = [0x15, 4, 0x19, 0x2C, 0x48, 6] + Array("schema".utf8) + [0x15, 2, 0, 0x15]
        #expect(Array(bytes[4..<20]) == root)
    }

    @Test func `the same rows give the same bytes, in batches of any size`() throws {
        var random = RandomTables(seed: 1)
        var table = random.table(rows: 500)
        let bytes = try table.bytes()
        for batches in [[], [0, 0, 1], [250], Array(repeating: 7, count: 71)] {
            table.batches = batches
            #expect(try table.bytes() == bytes)
        }
    }

    @Test func `a row group goes to the sink when it is full`() throws {
        let output = Output()
        var options = ParquetOptions()
        options.rowGroupRows = 10
        let writer = try ParquetWriter(columns: [ParquetColumn("id", .int32)], options: options) { output.bytes += $0 }
        try writer.write([.int32s(Array(repeating: 1, count: 9))])
        #expect(output.bytes.isEmpty)
        try writer.write([.int32s([1])])
        let count = output.bytes.count
        #expect(count > 4 + 40)
        try writer.write([.int32s(Array(repeating: 1, count: 9))])
        #expect(output.bytes.count == count && writer.rows == 19)
        try writer.finish()
        #expect(output.bytes.count > count)
    }

    @Test func `a batch that does not fit is refused, and the file can continue`() throws {
        let columns = [
            ParquetColumn("id", .int64), ParquetColumn("cost", .decimal),
            ParquetColumn("text", .string, isNullable: true),
        ]
        let output = Output()
        let writer = try ParquetWriter(columns: columns) { output.bytes += $0 }
        let good: [ParquetValues] = [.int64s([1]), .int64s([2]), .strings([nil])]
        let refused: [([ParquetValues], ParquetError)] = [
            ([.int64s([1])], .wrongColumnCount(expected: 3, found: 1)),
            ([.int32s([1]), .int64s([2]), .strings([nil])], .wrongKind(column: "id")),
            ([.int64s([1]), .int64s([2]), .bytes([nil])], .wrongKind(column: "text")),
            ([.int64s([1]), .int64s([2]), .strings([])], .unequalRowCounts(column: "text")),
            ([.int64s([1, nil]), .int64s([2, 3]), .strings([nil, nil])], .unexpectedNull(column: "id", row: 1)),
            ([.int64s([1]), .int64s([1_000_000_000_000_000_000]), .strings([nil])], .outOfRange),
            ([.int64s([1]), .int64s([.min]), .strings([nil])], .outOfRange),
        ]
        for (batch, error) in refused {
            try writer.write(good)
            #expect(throws: error) { try writer.write(batch) }
        }
        try writer.finish()
        let rows = refused.count
        let expected = Table(
            columns: columns,
            values: [
                .int64s(Array(repeating: 1, count: rows)), .int64s(Array(repeating: 2, count: rows)),
                .strings(Array(repeating: nil, count: rows)),
            ])
        #expect(try output.bytes == expected.bytes())
    }

    @Test func `a file needs columns of different names`() {
        #expect(throws: ParquetError.noColumns) { try ParquetWriter(columns: []) { _ in } }
        #expect(throws: ParquetError.duplicateColumn("a")) {
            try ParquetWriter(columns: [ParquetColumn("a", .int32), ParquetColumn("a", .bytes)]) { _ in }
        }
    }

    @Test func `nothing is written after the end or after a failure`() throws {
        let columns = [ParquetColumn("id", .int32)]
        let finished = try ParquetWriter(columns: columns) { _ in }
        try finished.finish()
        #expect(throws: ParquetError.closed) { try finished.write([.int32s([1])]) }
        #expect(throws: ParquetError.closed) { try finished.finish() }

        let failed = try ParquetWriter(columns: columns) { _ in throw SinkFault() }
        try failed.write([.int32s([1])])
        #expect(throws: SinkFault.self) { try failed.finish() }
        #expect(throws: ParquetError.closed) { try failed.finish() }

        let uncompressed = try ParquetWriter(columns: columns, compress: { _ in nil }, sink: { _ in })
        try uncompressed.write([.int32s([1])])
        #expect(throws: ParquetError.compressionFailed(column: "id")) { try uncompressed.finish() }
        #expect(throws: ParquetError.closed) { try uncompressed.write([.int32s([1])]) }
    }
}

extension ParquetError {
    fileprivate static let outOfRange = ParquetError.decimalOutOfRange(column: "cost", row: 0)
}
