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
    private let replacesAttributes: Bool

    /// - Parameters:
    ///   - path: A file, or `-` for standard input.
    ///   - format: Nil: JSON Lines when the file begins with `{`, otherwise CSV.
    ///   - rejectsPath: Nil: lines that cannot be used are counted only.
    ///   - replacesAttributes: The attributes of a line take the place of all that its device has.
    package init(
        path: String, format: ImportFormat? = nil, rejectsPath: String? = nil, replacesAttributes: Bool = false
    ) {
        self.replacesAttributes = replacesAttributes
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
            let decoder = decoder(columns: nil)
            return try ListReader(LineCutter(source, format: .lines), decoder, path: path, rejectsPath: rejectsPath)
        case .csv:
            let line = source.bytes[source.start...].prefix { $0 != 0x0A && $0 != 0x0D }
            var cutter = LineCutter(source, format: .csv(delimiter: CSVHeader.delimiter(of: line)))
            let names = try CSVHeader.names(&cutter)
            let columns = try CSVHeader.columns(names, path: cutter.path, line: cutter.line)
            return try ListReader(cutter, decoder(columns: columns), path: path, rejectsPath: rejectsPath)
        }
    }

    private func decoder(columns: [DeviceColumn]?) -> DeviceLineDecoder {
        DeviceLineDecoder(columns: columns, isLenient: true, replacesAttributes: replacesAttributes)
    }
}

/// Why an import cannot begin or go on. Faults of single lines are no errors: they go to the rejects file.
package enum ImportError: Error, CustomStringConvertible {
    case unreadable(path: String, reason: String)
    /// The header, or what stands in its place; one text per problem, each with its location.
    case header([String])
    case rejectsUnwritable(path: String, reason: String)
    /// The task was cancelled while the file gave nothing.
    case stopped(path: String)

    /// Where lines that cannot be used go, unless the caller names a file.
    package static func rejectsPath(for input: String) -> String { RejectsFile.defaultPath(for: input) }

    package var description: String {
        switch self {
        case .unreadable(let path, let reason): "\(path): cannot be read (\(reason)); check the path and permissions"
        case .header(let problems): problems.joined(separator: "\n")
        case .rejectsUnwritable(let path, let reason):
            "\(path): the rejects file cannot be written (\(reason)); name another with its folder in place"
        case .stopped(let path): "\(path): the reading was stopped before its end; give the same command again"
        }
    }
}

/// How many records of a list were read, and how many of them are good. `read` = `good` + `rejected`; blank lines are no
/// records.
package struct ReadCounts: Hashable, Sendable {
    /// Values that were left out of records that are good without them.
    package struct OddValues: Hashable, Sendable {
        package var count: Int
        package var firstLine: Int
    }

    /// Reasons differ by column, and by the names of attributes.
    private static let reasonsMax = 50
    private static let furtherReason = "a value of another column is of no use"

    package var good = 0
    package var rejected = 0
    /// By the reason.
    package private(set) var oddValues: [String: OddValues] = [:]

    package init() {}

    package var read: Int { good + rejected }

    mutating func addOdd(_ reason: String, line: Int) {
        let isKnown = oddValues[reason] != nil || oddValues.count < Self.reasonsMax
        oddValues[isKnown ? reason : Self.furtherReason, default: OddValues(count: 0, firstLine: line)].count += 1
    }
}
