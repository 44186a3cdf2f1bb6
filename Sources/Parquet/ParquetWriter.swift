/// Writes a Parquet file of flat columns to a sink, one row group at a time. The file is valid after ``finish()``, also
/// if it has no rows.
package final class ParquetWriter {
    private enum State {
        case new
        case begun
        case closed
    }

    private static let magic = Array("PAR1".utf8)
    /// The number of rows between two checks of the buffered bytes.
    private static let sliceRows = 4096

    private let columns: [ParquetColumn]
    private let options: ParquetOptions
    private let sink: ([UInt8]) throws -> Void
    private var encoders: [ColumnEncoder]
    private var metadata: FileMetadata
    private var state = State.new
    private var offset = 0
    private var groupRows = 0
    /// The number of rows that the writer has accepted.
    package private(set) var rows = 0

    /// - Parameters:
    ///   - compress: compresses a page in gzip format. `nil` leaves all pages uncompressed.
    ///   - sink: receives the bytes of the file in order.
    package init(
        columns: [ParquetColumn], options: ParquetOptions = ParquetOptions(), compress: Compressor? = nil,
        sink: @escaping ([UInt8]) throws -> Void
    ) throws(ParquetError) {
        guard !columns.isEmpty else { throw .noColumns }
        var names: Set<String> = []
        for column in columns where !names.insert(column.name).inserted { throw .duplicateColumn(column.name) }
        let options = options.clamped
        let seed = UInt64.random(in: .min ... .max)
        self.columns = columns
        self.options = options
        self.sink = sink
        encoders = columns.map { ColumnEncoder($0, options, compress, seed: seed) }
        metadata = FileMetadata(columns, options)
    }

    /// Appends rows: the values of each column in the order of the columns. A batch that does not fit the columns is
    /// refused as a whole, and the file can continue. After any other error the file is closed.
    package func write(_ batch: [ParquetValues]) throws {
        guard state != .closed else { throw ParquetError.closed }
        try check(batch)
        let count = batch[0].count
        var start = 0
        try closingOnError {
            while start < count {
                let room = min(Self.sliceRows, options.rowGroupRows - groupRows)
                let slice = start..<min(start + room, count)
                for (index, values) in batch.enumerated() { try encoders[index].append(values, rows: slice) }
                start = slice.upperBound
                groupRows += slice.count
                if isGroupFull { try closeRowGroup() }
            }
        }
        rows += count
    }

    /// Writes the last row group and the footer.
    package func finish() throws {
        guard state != .closed else { throw ParquetError.closed }
        try closingOnError {
            if groupRows > 0 { try closeRowGroup() }
            try begin()
            var footer = metadata.encoded
            footer.append(littleEndian: UInt32(footer.count))
            try emit(footer + Self.magic)
        }
        state = .closed
    }
}

extension ParquetWriter {
    private var isGroupFull: Bool {
        groupRows >= options.rowGroupRows || encoders.reduce(0) { $0 + $1.bufferedBytes } >= options.rowGroupBytes
    }

    private func check(_ batch: [ParquetValues]) throws(ParquetError) {
        guard batch.count == columns.count else {
            throw .wrongColumnCount(expected: columns.count, found: batch.count)
        }
        for (column, values) in zip(columns, batch) {
            guard values.count == batch[0].count else { throw .unequalRowCounts(column: column.name) }
            try column.check(values)
        }
    }

    private func closeRowGroup() throws {
        try begin()
        let start = offset
        var chunks: [ColumnChunk.Metadata] = []
        for index in encoders.indices {
            let chunk = try encoders[index].finishChunk()
            try emit(chunk.bytes)
            chunks.append(chunk.metadata)
        }
        metadata.rowGroups.append(FileMetadata.RowGroup(offset: start, rows: groupRows, chunks: chunks))
        groupRows = 0
    }

    private func begin() throws {
        guard state == .new else { return }
        state = .begun
        try emit(Self.magic)
    }

    private func emit(_ bytes: [UInt8]) throws {
        try sink(bytes)
        offset += bytes.count
    }

    private func closingOnError(_ body: () throws -> Void) throws {
        do { try body() } catch {
            state = .closed
            throw error
        }
    }
}
