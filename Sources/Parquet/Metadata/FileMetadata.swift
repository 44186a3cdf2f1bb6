/// The footer of a file.
struct FileMetadata {
    struct RowGroup {
        let offset: Int
        let rows: Int
        let chunks: [ColumnChunk.Metadata]
    }

    private let columns: [ParquetColumn]
    private let options: ParquetOptions
    var rowGroups: [RowGroup] = []

    init(_ columns: [ParquetColumn], _ options: ParquetOptions) {
        self.columns = columns
        self.options = options
    }

    /// The `FileMetaData` in Thrift's compact protocol.
    var encoded: [UInt8] {
        var writer = CompactWriter()
        writer.structure { file in
            // Version 2 of the format knows dictionary encoding by its current name.
            file.field(1, 2 as Int32)
            file.field(2, [nil] + columns, of: .structure, write(schema:_:))
            file.field(3, Int64(rowGroups.reduce(0) { $0 + $1.rows }))
            file.field(4, rowGroups, of: .structure) { $1.write(to: &$0) }
            if !options.metadata.isEmpty { file.field(5, options.metadata, of: .structure, write(pair:_:)) }
            file.field(6, options.createdBy)
            // Each column has the order of its type.
            file.field(7, columns, of: .structure) { list, _ in list.structure { $0.field(1) { _ in } } }
        }
        return writer.bytes
    }

    /// Writes the `SchemaElement` of a column. `nil` is the root.
    private func write(schema writer: inout CompactWriter, _ column: ParquetColumn?) {
        writer.structure { element in
            if let column {
                column.write(to: &element)
            } else {
                element.field(4, "schema")
                element.field(5, Int32(columns.count))
            }
        }
    }

    private func write(pair writer: inout CompactWriter, _ pair: (key: String, value: String)) {
        writer.structure {
            $0.field(1, pair.key)
            $0.field(2, pair.value)
        }
    }
}

extension FileMetadata.RowGroup {
    fileprivate func write(to writer: inout CompactWriter) {
        writer.structure { group in
            var next = offset
            group.field(1, chunks, of: .structure) { list, chunk in
                chunk.write(to: &list, offset: next)
                next += chunk.byteCount
            }
            group.field(2, Int64(chunks.reduce(0) { $0 + $1.uncompressedCount }))
            group.field(3, Int64(rows))
            group.field(5, Int64(offset))
            group.field(6, Int64(next - offset))
        }
    }
}
