/// Compresses a page in gzip format. Returns `nil` if that fails.
package typealias Compressor = ([UInt8]) -> [UInt8]?

/// The values of the format's enumeration of encodings.
enum PageEncoding: Int32 {
    case plain = 0
    case levels = 3
    case dictionary = 8
}

/// The finished pages of a column chunk: a dictionary page, if any, and data pages of version 1.
struct ChunkPages {
    private enum PageType: Int32 {
        case data = 0
        case dictionary = 2
    }

    private let column: ParquetColumn
    private let compress: Compressor?
    private(set) var bytes: [UInt8] = []
    /// The size that the pages and their headers would have uncompressed.
    private(set) var uncompressedCount = 0
    private(set) var rows = 0
    /// The length of the dictionary page with its header.
    private(set) var dictionaryCount = 0
    private(set) var encodings: [PageEncoding]

    init(_ column: ParquetColumn, _ compress: Compressor?) {
        self.column = column
        self.compress = compress
        encodings = column.isNullable ? [.levels] : []
    }

    mutating func appendDictionary(_ values: [UInt8], count: Int) throws(ParquetError) {
        try append(values, .dictionary) { header in
            header.field(7) {
                $0.field(1, Int32(count))
                $0.field(2, PageEncoding.plain.rawValue)
            }
        }
        note(.plain)
        dictionaryCount = bytes.count
    }

    mutating func appendData(_ body: [UInt8], encoding: PageEncoding, rows: Int) throws(ParquetError) {
        try append(body, .data) { header in
            header.field(5) {
                $0.field(1, Int32(rows))
                $0.field(2, encoding.rawValue)
                $0.field(3, PageEncoding.levels.rawValue)
                $0.field(4, PageEncoding.levels.rawValue)
            }
        }
        note(encoding)
        self.rows += rows
    }

    private mutating func note(_ encoding: PageEncoding) {
        if !encodings.contains(encoding) { encodings.append(encoding) }
    }

    private mutating func append(_ body: [UInt8], _ type: PageType, _ details: (inout CompactWriter) -> Void)
        throws(ParquetError)
    {
        let compressed = try compressed(body)
        guard let size = Int32(exactly: body.count), let compressedSize = Int32(exactly: compressed.count) else {
            throw .valueTooLong(column: column.name)
        }
        var header = CompactWriter()
        header.structure {
            $0.field(1, type.rawValue)
            $0.field(2, size)
            $0.field(3, compressedSize)
            details(&$0)
        }
        bytes += header.bytes
        bytes += compressed
        uncompressedCount += header.bytes.count + body.count
    }

    private func compressed(_ body: [UInt8]) throws(ParquetError) -> [UInt8] {
        guard let compress else { return body }
        guard let compressed = compress(body) else { throw .compressionFailed(column: column.name) }
        return compressed
    }
}
