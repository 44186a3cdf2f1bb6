package import Model

/// The forms a list may be imported in.
package enum ImportFormat: String, Sendable, CaseIterable {
    case csv
    /// One JSON object per line.
    case jsonLines = "jsonl"
}

/// Reads devices from CSV with a header or JSON Lines, in batches, with memory that does not grow with the file.
///
/// Lines that cannot be used go to the rejects file with their number and the reason; the others are kept.
package struct DeviceFileReader: Sendable {
    private let path: String
    private let format: ImportFormat?
    private let rejectsPath: String?

    /// - Parameters:
    ///   - path: A file, or `-` for standard input.
    ///   - format: Nil: JSON Lines when the file begins with `{`, otherwise CSV.
    ///   - rejectsPath: Nil: lines that cannot be used are counted only.
    package init(path: String, format: ImportFormat? = nil, rejectsPath: String? = nil) {
        self.path = path
        self.format = format
        self.rejectsPath = rejectsPath
    }

    /// Gives each batch of at most `size` devices to `body`, in the order of the file.
    ///
    /// Throws ``ImportError`` before the first batch for a file or header that cannot be read, and what `body` throws.
    package func forEachBatch(size: Int, _ body: ([DeviceRecord]) throws -> Void) throws -> ImportCounts {
        var lines = try DeviceLines(path: path, format: format, rejectsPath: rejectsPath)
        while let batch = try lines.next(size) { try body(batch) }
        return try lines.finish()
    }

    /// As above, for a body that waits.
    package func forEachBatch(
        size: Int, isolation: isolated (any _Concurrency.Actor)? = #isolation, _ body: ([DeviceRecord]) async throws -> Void
    ) async throws -> ImportCounts {
        var lines = try DeviceLines(path: path, format: format, rejectsPath: rejectsPath)
        while let batch = try lines.next(size) {
            try Task.checkCancellation()
            try await body(batch)
        }
        return try lines.finish()
    }
}

/// A device file being read.
private struct DeviceLines {
    private var cutter: LineCutter
    private var decoder: DeviceLineDecoder
    private var rejects: RejectsFile?
    private var counts = ImportCounts()

    init(path: String, format: ImportFormat?, rejectsPath: String?) throws(ImportError) {
        var source = try ByteSource(path: path)
        try source.skipMark()
        let first = try source.peek()
        let guessed: ImportFormat = first == UInt8(ascii: "{") ? .jsonLines : .csv
        switch format ?? guessed {
        case .jsonLines:
            cutter = LineCutter(source, format: .lines)
            decoder = DeviceLineDecoder(columns: nil)
        case .csv:
            let line = source.bytes[source.start...].prefix { $0 != 0x0A && $0 != 0x0D }
            cutter = LineCutter(source, format: .csv(delimiter: CSVHeader.delimiter(of: line)))
            let names = try CSVHeader.names(&cutter)
            decoder = DeviceLineDecoder(columns: try CSVHeader.columns(names, path: cutter.path, line: cutter.line))
        }
        if let rejectsPath { rejects = try RejectsFile(path: rejectsPath, input: path) }
    }

    /// The next devices, at most `size`; nil at the end.
    mutating func next(_ size: Int) throws -> [DeviceRecord]? {
        var batch: [DeviceRecord] = []
        batch.reserveCapacity(size)
        while batch.count < size {
            switch try cutter.next() {
            case .end: return batch.isEmpty ? nil : batch
            case .broken(let range, let reason): try reject(range, reason, token: nil)
            case .record(let range):
                do throws(LineFault) {
                    batch.append(try decoder.device(cutter.bytes, range, fields: cutter.fields))
                    counts.good += 1
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

    mutating func finish() throws -> ImportCounts {
        try rejects?.finish()
        try cutter.close()
        return counts
    }

    private mutating func reject(_ range: Range<Int>, _ reason: String, token: Range<Int>?) throws {
        counts.rejected += 1
        try rejects?.add(line: cutter.line, reason: reason, bytes: cutter.bytes, range: range, token: token)
    }
}
