package import Model

/// A member of a segment, as a member file names it.
package enum SegmentMember: Hashable, Sendable {
    case installationID(String)
    case userID(String)
    case token(DeviceToken)
}

/// Reads the members of a segment: CSV with one column named `installation_id`, `user_id` or `token`, or one
/// installation id per line.
package struct SegmentFileReader: Sendable {
    private let path: String
    private let rejectsPath: String?

    /// Reads the file at `path`, or standard input for `-`. If `rejectsPath` is `nil`, unusable lines are only counted.
    package init(path: String, rejectsPath: String? = nil) {
        self.path = path
        self.rejectsPath = rejectsPath
    }

    /// Passes each batch of at most `size` members to `body`, in the order of the file.
    package func forEachBatch(size: Int, _ body: ([SegmentMember]) throws -> Void) throws -> ReadCounts {
        try list().forEachBatch(size: size, body)
    }

    /// Does the same for an asynchronous body.
    package func forEachBatch(
        size: Int, isolation: isolated (any _Concurrency.Actor)? = #isolation,
        _ body: ([SegmentMember]) async throws -> Void
    ) async throws -> ReadCounts {
        try await list().forEachBatch(size: size, isolation: isolation, body)
    }

    private func list() throws(ImportError) -> ListReader<SegmentMemberDecoder> {
        let columns = SegmentMemberDecoder.columns
        var source = try ByteSource(path: path)
        try source.skipMark()
        var cutter = LineCutter(source, format: .csv(delimiter: UInt8(ascii: ",")))
        let names = try CSVHeader.names(&cutter).map { $0.lowercased() }
        let isHeader = names.contains { columns.contains($0) }
        if names.count > 1 || (!isHeader && Self.mistyped(names[0]) != nil) {
            let nearest = Self.mistyped(names[0]).map { "; did you mean \(quoted($0))?" }
            let what = "error: a member file must have one of the columns \(columns.joined(separator: ", "))"
            throw .header(["\(cutter.path):\(cutter.line):1: \(what)\(names.count > 1 ? "" : nearest ?? "")"])
        }
        if !isHeader { cutter.putBack() }
        let decoder = SegmentMemberDecoder(column: isHeader ? names[0] : "installation_id")
        return try ListReader(cutter, decoder, path: path, rejectsPath: rejectsPath)
    }

    /// Returns the column name that a first line probably misspells. `nil` for a correct name, and for a line with
    /// digits, which is probably an id.
    private static func mistyped(_ name: String) -> String? {
        let columns = SegmentMemberDecoder.columns
        let hasDigits = name.contains { $0.isNumber }
        return columns.contains(name) || hasDigits ? nil : Suggestion.nearest(to: name, among: columns)
    }
}

/// Decodes a record of one field into a member.
struct SegmentMemberDecoder: RecordDecoder {
    static let columns = ["installation_id", "user_id", "token"]

    /// One of ``columns``.
    let column: String

    func decode(_ bytes: [UInt8], _ range: Range<Int>, fields: [CSVField]) throws(LineFault) -> SegmentMember {
        guard fields.count == 1, let field = fields.first else {
            throw LineFault(reason: "\(fields.count) fields instead of one")
        }
        return try member(field.hasDoubledQuotes ? field.unescaped(bytes) : Array(bytes[field.range]))
    }

    func member(_ text: [UInt8]) throws(LineFault) -> SegmentMember {
        if text.isEmpty { throw LineFault(reason: "\(column) is empty") }
        switch column {
        case "token": return .token(try DeviceText.token(text, text.indices))
        case "user_id": return .userID(try DeviceText.identifier(text[...], column))
        default: return .installationID(try DeviceText.identifier(text[...], column))
        }
    }

    func tokenRange(_ bytes: [UInt8], _ range: Range<Int>, fields: [CSVField]?) -> Range<Int>? {
        column == "token" ? range : nil
    }
}
