/// The number of nulls of a column chunk and the range of its values, in plain encoding without a length.
struct ColumnStatistics {
    let nullCount: Int
    let lowest: [UInt8]?
    let highest: [UInt8]?

    func write(to writer: inout CompactWriter) {
        writer.field(3, Int64(nullCount))
        guard let lowest, let highest else { return }
        writer.field(5, highest)
        writer.field(6, lowest)
        writer.field(7, true)
        writer.field(8, true)
    }
}

/// The bytes of a column in a row group, with the facts that the footer tells of them.
struct ColumnChunk {
    fileprivate enum Codec: Int32 {
        case uncompressed = 0
        case gzip = 2
    }

    let bytes: [UInt8]
    let metadata: Metadata

    init(_ column: ParquetColumn, _ pages: ChunkPages, _ statistics: ColumnStatistics, isCompressed: Bool) {
        bytes = pages.bytes
        metadata = Metadata(
            column: column, encodings: pages.encodings, codec: isCompressed ? .gzip : .uncompressed, rows: pages.rows,
            uncompressedCount: pages.uncompressedCount, byteCount: pages.bytes.count,
            dictionaryCount: pages.dictionaryCount, statistics: statistics)
    }

    struct Metadata {
        fileprivate let column: ParquetColumn
        fileprivate let encodings: [PageEncoding]
        fileprivate let codec: Codec
        fileprivate let rows: Int
        let uncompressedCount: Int
        let byteCount: Int
        fileprivate let dictionaryCount: Int
        fileprivate let statistics: ColumnStatistics

        /// Writes the `ColumnChunk` of a chunk that begins at `offset` in the file.
        func write(to writer: inout CompactWriter, offset: Int) {
            writer.structure { chunk in
                // A deprecated field that readers still require.
                chunk.field(2, 0 as Int64)
                chunk.field(3) { writeMetadata(to: &$0, offset: offset) }
            }
        }

        private func writeMetadata(to writer: inout CompactWriter, offset: Int) {
            writer.field(1, column.physicalType.rawValue)
            writer.field(2, encodings, of: .int32) { $0.append(zigzag: Int64($1.rawValue)) }
            writer.field(3, [column.name], of: .binary) { $0.append(binary: Array($1.utf8)) }
            writer.field(4, codec.rawValue)
            writer.field(5, Int64(rows))
            writer.field(6, Int64(uncompressedCount))
            writer.field(7, Int64(byteCount))
            writer.field(9, Int64(offset + dictionaryCount))
            if dictionaryCount > 0 { writer.field(11, Int64(offset)) }
            writer.field(12) { statistics.write(to: &$0) }
        }
    }
}
