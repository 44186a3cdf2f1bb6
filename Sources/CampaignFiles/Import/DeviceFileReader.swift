package import Model

/// The formats of an imported list.
package enum ImportFormat: String, Sendable, CaseIterable {
    case csv
    /// One JSON object per line.
    case jsonLines = "jsonl"
}

/// Reads devices from CSV with a header or JSON Lines, in batches. Memory use does not grow with the file.
///
/// Unusable lines go to the rejects file with their number and the reason. The other lines are imported.
package struct DeviceFileReader: Sendable {
    private let path: String
    private let format: ImportFormat?
    private let rejectsPath: String?
    private let replacesAttributes: Bool
    private let leavesOutUnknown: Bool
    private let isAllowed: (@Sendable (_ topic: String) -> Bool)?

    /// - Parameters:
    ///   - path: a file, or `-` for standard input.
    ///   - format: `nil` means JSON Lines if the file begins with `{`, otherwise CSV.
    ///   - rejectsPath: `nil` means that unusable lines are only counted.
    ///   - replacesAttributes: whether the attributes of a line replace all of its device's attributes.
    ///   - leavesOutUnknown: whether unknown columns are left out. Otherwise a file with such a column is refused, and
    ///     a JSON line with one is unusable.
    ///   - isAllowed: whether the caller may import devices of a topic. Other lines are unusable. `nil` allows all
    ///     topics.
    package init(
        path: String, format: ImportFormat? = nil, rejectsPath: String? = nil, replacesAttributes: Bool = false,
        leavesOutUnknown: Bool = false, isAllowed: (@Sendable (_ topic: String) -> Bool)? = nil
    ) {
        self.isAllowed = isAllowed
        self.leavesOutUnknown = leavesOutUnknown
        self.replacesAttributes = replacesAttributes
        self.path = path
        self.format = format
        self.rejectsPath = rejectsPath
    }

    /// Passes each batch of at most `size` devices to `body`, in the order of the file.
    ///
    /// Throws ``ImportError`` before the first batch if the file or header cannot be read. Rethrows the errors of
    /// `body`.
    package func forEachBatch(size: Int, _ body: ([DeviceRecord]) throws -> Void) throws -> ReadCounts {
        try list().forEachBatch(size: size, body)
    }

    /// Does the same for an asynchronous body.
    package func forEachBatch(
        size: Int, isolation: isolated (any _Concurrency.Actor)? = #isolation,
        _ body: ([DeviceRecord]) async throws -> Void
    ) async throws -> ReadCounts {
        try await list().forEachBatch(size: size, isolation: isolation, body)
    }

    private func list() throws(ImportError) -> ListReader<DeviceLineDecoder> {
        let (cutter, decoder, _) = try opened()
        return try ListReader(cutter, decoder, path: path, rejectsPath: rejectsPath)
    }

    /// Opens the file, and returns its parts at the first record.
    ///
    /// - Returns: also the names in the header of CSV; `nil` for JSON Lines.
    func opened() throws(ImportError) -> (LineCutter, DeviceLineDecoder, header: [String]?) {
        let (cutter, header) = try LineCutter.opened(path, format: format)
        guard let names = header else { return (cutter, decoder(columns: nil), nil) }
        let columns = try CSVHeader.columns(
            names, path: cutter.path, line: cutter.line, leavesOutUnknown: leavesOutUnknown)
        return (cutter, decoder(columns: columns), names)
    }

    private func decoder(columns: [DeviceColumn]?) -> DeviceLineDecoder {
        DeviceLineDecoder(
            columns: columns, isLenient: true, leavesOutUnknown: leavesOutUnknown,
            replacesAttributes: replacesAttributes, isAllowed: isAllowed)
    }
}

/// The reason why an import cannot begin or continue. Faults of single lines go to the rejects file instead.
package enum ImportError: Error, CustomStringConvertible {
    case unreadable(path: String, reason: String)
    /// The header is faulty, or missing. There is one text per problem, each with its location.
    case header([String])
    case rejectsUnwritable(path: String, reason: String)
    /// The task was cancelled while the file was being read.
    case stopped(path: String)

    /// Returns the default path of the rejects file.
    package static func rejectsPath(for input: String) -> String { RejectsFile.defaultPath(for: input) }

    package var description: String {
        switch self {
        case .unreadable(let path, let reason): "\(path): cannot be read (\(reason)); check the path and permissions"
        case .header(let problems): problems.joined(separator: "\n")
        case .rejectsUnwritable(let path, let reason):
            "\(path): the rejects file cannot be written (\(reason)); name another file in an existing folder"
        case .stopped(let path): "\(path): reading was stopped early; run the same command again"
        }
    }
}

/// The counts of read and accepted records of a list. `read` = `good` + `rejected`. Blank lines are not records.
package struct ReadCounts: Hashable, Sendable {
    /// Values that were left out of otherwise good records.
    package struct OddValues: Hashable, Sendable {
        package var count: Int
        package var firstLine: Int
    }

    /// The maximum number of separate reasons. A limit is needed because a reason may contain the name of an
    /// attribute.
    private static let reasonsMax = 50
    private static let furtherReason = "another column has an invalid value"

    package var good = 0
    package var rejected = 0
    /// The values that were left out, by reason.
    package private(set) var oddValues: [String: OddValues] = [:]

    package init() {}

    package var read: Int { good + rejected }

    mutating func addOdd(_ reason: String, line: Int) {
        let isKnown = oddValues[reason] != nil || oddValues.count < Self.reasonsMax
        oddValues[isKnown ? reason : Self.furtherReason, default: OddValues(count: 0, firstLine: line)].count += 1
    }
}
