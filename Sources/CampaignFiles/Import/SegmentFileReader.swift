package import Model

/// Who belongs to a segment, as a member file names it.
package enum SegmentMember: Hashable, Sendable {
    case installationID(String)
    case userID(String)
    case token(DeviceToken)
}

/// Reads the members of a segment: CSV with one column named `installation_id`, `user_id` or `token`, or just one
/// installation id per line.
package struct SegmentFileReader: Sendable {
    private let path: String
    private let rejectsPath: String?

    /// `path` may be `-` for standard input; without `rejectsPath` lines that cannot be used are counted only.
    package init(path: String, rejectsPath: String? = nil) {
        self.path = path
        self.rejectsPath = rejectsPath
    }

    /// Gives each batch of at most `size` members to `body`, in the order of the file.
    package func forEachBatch(size: Int, _ body: ([SegmentMember]) throws -> Void) throws -> ImportCounts {
        var lines = try MemberLines(path: path, rejectsPath: rejectsPath)
        while let batch = try lines.next(size) { try body(batch) }
        return try lines.finish()
    }

    /// As above, for a body that waits.
    package func forEachBatch(
        size: Int, isolation: isolated (any _Concurrency.Actor)? = #isolation, _ body: ([SegmentMember]) async throws -> Void
    ) async throws -> ImportCounts {
        var lines = try MemberLines(path: path, rejectsPath: rejectsPath)
        while let batch = try lines.next(size) {
            try Task.checkCancellation()
            try await body(batch)
        }
        return try lines.finish()
    }
}

/// A member file being read.
private struct MemberLines {
    private static let columns = ["installation_id", "user_id", "token"]

    private var cutter: LineCutter
    private let column: String
    private var rejects: RejectsFile?
    private var counts = ImportCounts()

    init(path: String, rejectsPath: String?) throws(ImportError) {
        var source = try ByteSource(path: path)
        try source.skipMark()
        cutter = LineCutter(source, format: .csv(delimiter: UInt8(ascii: ",")))
        let names = try CSVHeader.names(&cutter).map { $0.lowercased() }
        let isHeader = names.contains { Self.columns.contains($0) }
        column = isHeader ? names[0] : "installation_id"
        if names.count > 1 || (!isHeader && Self.mistyped(names[0]) != nil) {
            let nearest = Self.mistyped(names[0]).map { "; did you mean \(quoted($0))?" }
            let what = "error: a member file has one column, \(Self.columns.joined(separator: ", "))"
            throw .header(["\(cutter.path):\(cutter.line):1: \(what)\(names.count > 1 ? "" : nearest ?? "")"])
        }
        if !isHeader { cutter.putBack() }
        if let rejectsPath { rejects = try RejectsFile(path: rejectsPath, input: path) }
    }

    mutating func next(_ size: Int) throws -> [SegmentMember]? {
        var batch: [SegmentMember] = []
        while batch.count < size {
            switch try cutter.next() {
            case .end: return batch.isEmpty ? nil : batch
            case .broken(let range, let reason): try reject(range, reason)
            case .record(let range):
                do throws(LineFault) {
                    batch.append(try member())
                    counts.good += 1
                } catch {
                    try reject(cutter.spansLines ? cutter.keepFirstLine() : range, error.reason)
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

    private func member() throws(LineFault) -> SegmentMember {
        guard cutter.fields.count == 1, let field = cutter.fields.first else {
            throw LineFault(reason: "\(cutter.fields.count) fields in place of one")
        }
        let bytes = field.hasDoubledQuotes ? field.unescaped(cutter.bytes) : Array(cutter.bytes[field.range])
        if bytes.isEmpty { throw LineFault(reason: "\(column) is empty") }
        switch column {
        case "token": return .token(try DeviceText.token(bytes, bytes.indices))
        case "user_id": return .userID(try DeviceText.identifier(bytes[...], column))
        default: return .installationID(try DeviceText.identifier(bytes[...], column))
        }
    }

    /// The known name that a first line resembles; ids do not look like one.
    private static func mistyped(_ name: String) -> String? {
        let hasDigits = name.contains { $0.isNumber }
        return columns.contains(name) || hasDigits ? nil : Suggestion.nearest(to: name, among: columns)
    }

    private mutating func reject(_ range: Range<Int>, _ reason: String) throws {
        counts.rejected += 1
        let token = column == "token" ? range : nil
        try rejects?.add(line: cutter.line, reason: reason, bytes: cutter.bytes, range: range, token: token)
    }
}
