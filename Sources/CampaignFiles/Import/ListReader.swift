/// Makes values out of the records of one kind of list.
protocol RecordDecoder {
    associatedtype Value: Sendable

    /// - Parameters:
    ///   - range: the record in `bytes`.
    ///   - fields: its fields, in CSV.
    mutating func decode(_ bytes: [UInt8], _ range: Range<Int>, fields: [CSVField]) throws(LineFault) -> Value

    /// Why values of the latest record were left out, though the record is kept.
    var oddValues: [String] { get }

    /// Where a device token stands in a record that is rejected, as far as that can be told.
    ///
    /// - Parameter fields: nil for a record that could not be cut into fields.
    func tokenRange(_ bytes: [UInt8], _ range: Range<Int>, fields: [CSVField]?) -> Range<Int>?
}

extension RecordDecoder {
    var oddValues: [String] { [] }
}

/// Reads a list of any length in batches, with memory that does not grow with the file. Records that cannot be used go to
/// the rejects file with their line number and the reason; the others are kept.
struct ListReader<Decoder: RecordDecoder> {
    private var cutter: LineCutter
    private var decoder: Decoder
    private var rejects: RejectsFile?
    private var counts = ReadCounts()

    /// - Parameters:
    ///   - cutter: stands at the first record, behind a header.
    ///   - rejectsPath: nil: lines that cannot be used are counted only.
    init(_ cutter: LineCutter, _ decoder: Decoder, path: String, rejectsPath: String?) throws(ImportError) {
        self.cutter = cutter
        self.decoder = decoder
        if let rejectsPath { rejects = try RejectsFile(path: rejectsPath, input: path) }
    }

    /// Gives each batch of at most `size` values to `body`, in the order of the file.
    consuming func forEachBatch(size: Int, _ body: ([Decoder.Value]) throws -> Void) throws -> ReadCounts {
        while let batch = try next(size) { try body(batch) }
        return try finish()
    }

    /// As above, for a body that waits.
    consuming func forEachBatch(
        size: Int, isolation: isolated (any _Concurrency.Actor)? = #isolation,
        _ body: ([Decoder.Value]) async throws -> Void
    ) async throws -> ReadCounts {
        while let batch = try next(size) {
            try Task.checkCancellation()
            try await body(batch)
        }
        return try finish()
    }

    /// The next values, at most `size`; nil at the end.
    private mutating func next(_ size: Int) throws -> [Decoder.Value]? {
        var batch: [Decoder.Value] = []
        batch.reserveCapacity(size)
        while batch.count < size {
            switch try cutter.next() {
            case .end: return batch.isEmpty ? nil : batch
            case .broken(let range, let reason):
                try reject(range, reason, token: decoder.tokenRange(cutter.bytes, range, fields: nil))
            case .record(let range):
                do throws(LineFault) {
                    let value = try decoder.decode(cutter.bytes, range, fields: cutter.fields)
                    // Its quotes may have swallowed good lines.
                    if cutter.spansLines, let odd = decoder.oddValues.first { throw LineFault(reason: odd) }
                    batch.append(value)
                    counts.good += 1
                    for reason in decoder.oddValues { counts.addOdd(reason, line: cutter.line) }
                } catch {
                    let token = decoder.tokenRange(cutter.bytes, range, fields: cutter.fields)
                    let line = cutter.spansLines ? cutter.keepFirstLine() : range
                    try reject(line, error.reason, token: token)
                }
            }
        }
        try rejects?.flush()
        return batch
    }

    private mutating func finish() throws -> ReadCounts {
        try rejects?.finish()
        try cutter.close()
        return counts
    }

    private mutating func reject(_ range: Range<Int>, _ reason: String, token: Range<Int>?) throws {
        counts.rejected += 1
        try rejects?.add(line: cutter.line, reason: reason, bytes: cutter.bytes, range: range, token: token)
    }
}
