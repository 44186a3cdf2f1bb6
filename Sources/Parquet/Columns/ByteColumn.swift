/// Encodes a column of texts or bytes. A text column begins each row group with a dictionary, and continues in plain
/// pages once the dictionary is full.
struct ByteColumn {
    private let column: ParquetColumn
    private let options: ParquetOptions
    private let compress: Compressor?
    private let seed: UInt64
    private var pages: ChunkPages
    /// The levels of the current page, or of all rows so far while the dictionary is in use.
    private var levels: DefinitionLevels
    private var nullCount = 0
    private var dictionary: ByteDictionary
    private var usesDictionary: Bool
    private var indices: [UInt32] = []
    /// The values of the current plain page.
    private var plain: [UInt8] = []
    private var range = ByteRange()

    init(_ column: ParquetColumn, _ options: ParquetOptions, _ compress: Compressor?, seed: UInt64) {
        self.column = column
        self.options = options
        self.compress = compress
        self.seed = seed
        pages = ChunkPages(column, compress)
        levels = DefinitionLevels(isNullable: column.isNullable)
        dictionary = Self.dictionary(of: column, options, seed)
        usesDictionary = column.kind != .bytes
    }

    private static func dictionary(of column: ParquetColumn, _ options: ParquetOptions, _ seed: UInt64)
        -> ByteDictionary
    {
        ByteDictionary(byteLimit: column.kind == .enumeration ? .max : options.dictionaryBytes, seed: seed)
    }

    var bufferedBytes: Int {
        pages.bytes.count + plain.count + dictionary.encoded.count + 4 * indices.count + levels.count
    }

    mutating func append(_ values: ParquetValues, rows: Range<Int>) throws(ParquetError) {
        switch values {
        case .strings(let strings):
            for row in rows {
                if let string = strings[row] { try append(string.utf8.span) } else { try appendNull() }
            }
        case .bytes(let strings):
            for row in rows {
                if let string = strings[row] { try append(string.span) } else { try appendNull() }
            }
        default: break
        }
    }

    private mutating func appendNull() throws(ParquetError) {
        if !usesDictionary, levels.count > 0, isPageFull(after: 0) { try flushPlain() }
        levels.append(isPresent: false)
    }

    private mutating func append(_ value: Span<UInt8>) throws(ParquetError) {
        guard value.count < Int32.max else { throw .valueTooLong(column: column.name) }
        if usesDictionary {
            if let index = dictionary.index(of: value) {
                indices.append(index)
                levels.append(isPresent: true)
                return
            }
            try leaveDictionary()
        }
        try appendPlain(value)
    }

    private mutating func appendPlain(_ value: Span<UInt8>) throws(ParquetError) {
        if levels.count > 0, isPageFull(after: 4 + value.count) { try flushPlain() }
        plain.append(littleEndian: UInt32(value.count))
        plain.append(copying: value)
        levels.append(isPresent: true)
        range.insert(value)
    }

    /// Whether a row of some bytes would pass the limit of a page.
    private func isPageFull(after count: Int) -> Bool {
        let levelBytes = column.isNullable ? levels.count / 8 + DefinitionLevels.overhead : 0
        return plain.count + count + levelBytes > options.pageBytes
    }

    mutating func finishChunk() throws(ParquetError) -> ColumnChunk {
        if usesDictionary { try leaveDictionary() }
        try flushPlain()
        let statistics = ColumnStatistics(nullCount: nullCount, lowest: range.lowest, highest: range.highest)
        let chunk = ColumnChunk(column, pages, statistics, isCompressed: compress != nil)
        pages = ChunkPages(column, compress)
        range = ByteRange()
        nullCount = 0
        usesDictionary = column.kind != .bytes
        return chunk
    }

    private mutating func flushPlain() throws(ParquetError) {
        guard levels.count > 0 else { return }
        var body: [UInt8] = []
        levels.append(0..<levels.count, to: &body)
        body += plain
        try pages.appendData(body, encoding: .plain, rows: levels.count)
        nullCount += levels.nullCount
        levels.removeAll()
        plain.removeAll(keepingCapacity: true)
    }
}

extension ByteColumn {
    /// Writes the rows so far with the dictionary if it is useful, and otherwise as plain values.
    private mutating func leaveDictionary() throws(ParquetError) {
        let full = dictionary
        let rows = levels
        let entries = indices
        dictionary = Self.dictionary(of: column, options, seed)
        indices.removeAll(keepingCapacity: true)
        levels.removeAll()
        usesDictionary = false
        let isUseful = column.kind == .enumeration ? full.count > 0 : 2 * full.count < entries.count
        if isUseful {
            try write(rows, entries, full)
        } else {
            try writePlain(rows, entries, full)
        }
    }

    private mutating func write(_ rows: DefinitionLevels, _ entries: [UInt32], _ dictionary: ByteDictionary)
        throws(ParquetError)
    {
        for entry in dictionary.ranges { range.insert(dictionary.encoded.span.extracting(entry)) }
        try pages.appendDictionary(dictionary.encoded, count: dictionary.count)
        let bitWidth = BitPacking.width(of: dictionary.count - 1)
        let room = options.pageBytes - DefinitionLevels.overhead
        let rowsPerPage = max(1, 8 * room / (bitWidth + (column.isNullable ? 1 : 0)))
        var next = 0
        for start in stride(from: 0, to: rows.count, by: rowsPerPage) {
            let page = start..<min(start + rowsPerPage, rows.count)
            let end = next + rows.presentCount(page)
            var body: [UInt8] = []
            rows.append(page, to: &body)
            body.append(UInt8(bitWidth))
            HybridEncoder.append(entries.span.extracting(next..<end), bitWidth: bitWidth, to: &body)
            try pages.appendData(body, encoding: .dictionary, rows: page.count)
            next = end
        }
        nullCount += rows.nullCount
    }

    private mutating func writePlain(_ rows: DefinitionLevels, _ entries: [UInt32], _ dictionary: ByteDictionary)
        throws(ParquetError)
    {
        var next = 0
        for row in 0..<rows.count {
            if rows.isPresent(row) {
                try appendPlain(dictionary.encoded.span.extracting(dictionary.ranges[Int(entries[next])]))
                next += 1
            } else {
                try appendNull()
            }
        }
    }
}

/// The lowest and the highest of some byte strings, in the order of their unsigned bytes.
struct ByteRange {
    /// The length of the longest value that statistics hold.
    private static let longest = 64

    private var values: (lowest: [UInt8], highest: [UInt8])?
    private var hasLongValue = false

    var lowest: [UInt8]? { hasLongValue ? nil : values?.lowest }
    var highest: [UInt8]? { hasLongValue ? nil : values?.highest }

    mutating func insert(_ value: Span<UInt8>) {
        guard !hasLongValue else { return }
        guard let values else {
            var bytes: [UInt8] = []
            bytes.append(copying: value.extracting(first: Self.longest))
            self.values = (bytes, bytes)
            hasLongValue = value.count > Self.longest
            return
        }
        let isLowest = Self.precedes(value, values.lowest.span)
        guard isLowest || Self.precedes(values.highest.span, value) else { return }
        guard value.count <= Self.longest else { return hasLongValue = true }
        var bytes: [UInt8] = []
        bytes.append(copying: value)
        if isLowest { self.values?.lowest = bytes } else { self.values?.highest = bytes }
    }

    private static func precedes(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
        for index in 0..<min(left.count, right.count) where left[index] != right[index] {
            return left[index] < right[index]
        }
        return left.count < right.count
    }
}
