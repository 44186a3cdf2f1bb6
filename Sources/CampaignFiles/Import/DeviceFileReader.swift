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
    package func forEachBatch(size: Int, _ body: ([DeviceRecord]) throws -> Void) throws -> ReadCounts {
        try list().forEachBatch(size: size, body)
    }

    /// As above, for a body that waits.
    package func forEachBatch(
        size: Int, isolation: isolated (any _Concurrency.Actor)? = #isolation,
        _ body: ([DeviceRecord]) async throws -> Void
    ) async throws -> ReadCounts {
        try await list().forEachBatch(size: size, isolation: isolation, body)
    }

    private func list() throws(ImportError) -> ListReader<DeviceLineDecoder> {
        var source = try ByteSource(path: path)
        try source.skipMark()
        let first = try source.peek()
        let guessed: ImportFormat = first == UInt8(ascii: "{") ? .jsonLines : .csv
        switch format ?? guessed {
        case .jsonLines:
            let decoder = DeviceLineDecoder(columns: nil)
            return try ListReader(LineCutter(source, format: .lines), decoder, path: path, rejectsPath: rejectsPath)
        case .csv:
            let line = source.bytes[source.start...].prefix { $0 != 0x0A && $0 != 0x0D }
            var cutter = LineCutter(source, format: .csv(delimiter: CSVHeader.delimiter(of: line)))
            let names = try CSVHeader.names(&cutter)
            let columns = try CSVHeader.columns(names, path: cutter.path, line: cutter.line)
            return try ListReader(cutter, DeviceLineDecoder(columns: columns), path: path, rejectsPath: rejectsPath)
        }
    }
}

/// Why an import cannot begin or go on. Faults of single lines are no errors: they go to the rejects file.
package enum ImportError: Error, CustomStringConvertible {
    case unreadable(path: String, reason: String)
    /// The header, or what stands in its place; one text per problem, each with its location.
    case header([String])
    case rejectsUnwritable(path: String, reason: String)

    /// Where lines that cannot be used go, unless the caller names a file.
    package static func rejectsPath(for input: String) -> String { RejectsFile.defaultPath(for: input) }

    package var description: String {
        switch self {
        case .unreadable(let path, let reason): "\(path): cannot be read (\(reason)); check the path and permissions"
        case .header(let problems): problems.joined(separator: "\n")
        case .rejectsUnwritable(let path, let reason):
            "\(path): the rejects file cannot be written (\(reason)); name another with its folder in place"
        }
    }
}

/// How many records of a list were read, and how many of them are good. `read` = `good` + `rejected`; blank lines are no
/// records.
package struct ReadCounts: Hashable, Sendable {
    package var good = 0
    package var rejected = 0

    package init() {}

    package var read: Int { good + rejected }
}
