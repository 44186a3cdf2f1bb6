/// Decodes the records of one kind of list into values.
protocol RecordDecoder {
    associatedtype Value: Sendable

    /// - Parameters:
    ///   - range: the record's range in `bytes`.
    ///   - fields: the record's fields, in CSV.
    mutating func decode(_ bytes: [UInt8], _ range: Range<Int>, fields: [CSVField]) throws(LineFault) -> Value

    /// The reasons for the values that were left out of the latest record. The rest of that record is kept.
    var oddValues: [String] { get }

    /// Returns the range of the device token in a rejected record. `nil` if it is unknown.
    ///
    /// - Parameter fields: the fields. `nil` if the record could not be split into fields.
    func tokenRange(_ bytes: [UInt8], _ range: Range<Int>, fields: [CSVField]?) -> Range<Int>?
}

extension RecordDecoder {
    var oddValues: [String] { [] }
}

/// Reads a list of any length in batches. Memory use does not grow with the file. Unusable records go to the rejects
/// file with their line number and the reason. The other records are kept.
struct ListReader<Decoder: RecordDecoder> {
    private var cutter: LineCutter
    private var decoder: Decoder
    private var rejects: RejectsFile?
    private var counts = ReadCounts()
    /// The lines of the latest batch, for a body that judges them. `nil` for any other body.
    private var judged: [JudgedLine]?

    /// A line whose value is not final before a body has judged it.
    private struct JudgedLine {
        var number: Int
        var result: Result<Decoder.Value, LineFault>
        var original: [UInt8]
        /// The range of the device token in the original.
        var token: Range<Int>?
    }

    /// - Parameters:
    ///   - cutter: a cutter at the first record, after a header.
    ///   - rejectsPath: `nil` means that unusable lines are only counted.
    init(_ cutter: LineCutter, _ decoder: Decoder, path: String, rejectsPath: String?) throws(ImportError) {
        self.cutter = cutter
        self.decoder = decoder
        if let rejectsPath { rejects = try RejectsFile(path: rejectsPath, input: path) }
    }

    /// Passes each batch of at most `size` values to `body`, in the order of the file.
    consuming func forEachBatch(size: Int, _ body: ([Decoder.Value]) throws -> Void) throws -> ReadCounts {
        while let batch = try next(size) { try body(batch) }
        return try finish()
    }

    /// Does the same for an asynchronous body.
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

    /// Passes each batch of at most `size` lines to `body`, in the order of the file: the number of each line, and its
    /// value or the reason why it is unusable. The body returns the lines that it refuses, and why. All these lines go
    /// to the rejects file, in order.
    consuming func forEachJudgedBatch(
        size: Int, isolation: isolated (any _Concurrency.Actor)? = #isolation,
        _ body: ([NumberedLine<Decoder.Value>]) async throws -> [Int: String]
    ) async throws -> ReadCounts {
        judged = []
        while try next(size) != nil {
            try Task.checkCancellation()
            let lines = judged ?? []
            let refused = try await body(lines.map { NumberedLine(number: $0.number, value: $0.result) })
            for line in lines {
                let reason: String
                switch line.result {
                case .failure(let fault): reason = fault.reason
                case .success:
                    guard let refusal = refused[line.number] else { continue }
                    reason = refusal
                    counts.good -= 1
                    counts.rejected += 1
                }
                try rejects?.add(
                    line: line.number, reason: reason, bytes: line.original, range: line.original.indices,
                    token: line.token)
            }
            try rejects?.flush()
            judged = []
        }
        return try finish()
    }

    /// Returns the next values, at most `size`. `nil` at the end.
    private mutating func next(_ size: Int) throws -> [Decoder.Value]? {
        var batch: [Decoder.Value] = []
        batch.reserveCapacity(size)
        while batch.count < size, judged?.count ?? 0 < size {
            switch try cutter.next() {
            case .end: return batch.isEmpty && judged?.isEmpty ?? true ? nil : batch
            case .broken(let range, let reason):
                try reject(range, reason, token: decoder.tokenRange(cutter.bytes, range, fields: nil))
            case .record(let range):
                do throws(LineFault) {
                    let value = try decoder.decode(cutter.bytes, range, fields: cutter.fields)
                    // The record's quotes may have swallowed good lines.
                    if cutter.spansLines, let odd = decoder.oddValues.first { throw LineFault(reason: odd) }
                    batch.append(value)
                    counts.good += 1
                    keep(.success(value), range, token: nil)
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
        guard judged == nil else { return keep(.failure(LineFault(reason: reason)), range, token: token) }
        try rejects?.add(line: cutter.line, reason: reason, bytes: cutter.bytes, range: range, token: token)
    }

    /// Keeps a line for the body that judges it.
    private mutating func keep(_ result: Result<Decoder.Value, LineFault>, _ range: Range<Int>, token: Range<Int>?) {
        guard judged != nil else { return }
        let kept = range.lowerBound..<min(range.upperBound, range.lowerBound + RejectsFile.originalBytesMax)
        judged?.append(
            JudgedLine(
                number: cutter.line, result: result, original: Array(cutter.bytes[kept]),
                token: token.map { $0.lowerBound - range.lowerBound..<$0.upperBound - range.lowerBound }))
    }
}

/// A line of a file, or an element of a list: its number from 1, and its value or the reason why it is unusable.
package struct NumberedLine<Value: Sendable>: Sendable {
    package var number: Int
    package var value: Result<Value, LineFault>
}
