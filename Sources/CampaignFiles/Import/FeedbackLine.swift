import Foundation
package import Model

/// A report of an app, as it was written: one JSON object, or one record of a CSV file.
package struct FeedbackLine: Sendable {
    package enum Source: Hashable, Sendable {
        /// The reference from the push's payload, in UTF-8.
        case reference([UInt8])
        case installation(String, topic: String)
    }

    /// The two halves of the UUID that the device made.
    package var id: (high: Int64, low: Int64)
    package var kind: FeedbackKind
    package var source: Source
    /// The name of an action or a conversion. Empty for other kinds.
    package var name: String
    /// The value of a conversion, in millionths.
    package var valueMicros: Int64?
    /// When it happened, by the device's clock. `nil` for the time of receipt.
    package var at: Timestamp?
    /// When the device sent the report, by its own clock. `nil` if the clock needs no correction.
    package var sentAt: Timestamp?
}

/// Decodes reports of apps.
struct FeedbackLineDecoder: RecordDecoder {
    static let columns = [
        "id", "type", "ref", "installation_id", "topic", "name", "value", "at", "sent_at",
    ]
    private static let nameBytesMax = 100
    private static let valueMax = 1e9
    private static let valueDigitsMax = 40
    private static let micros = 1e6

    /// The columns of a CSV file in order. `nil` for JSON.
    let header: [String]?

    func decode(_ bytes: [UInt8], _ range: Range<Int>, fields: [CSVField]) throws(LineFault) -> FeedbackLine {
        var texts: [String: [UInt8]] = [:]
        if let header {
            guard fields.count == header.count else {
                throw LineFault(reason: "\(fields.count) fields, but the header has \(header.count)")
            }
            for (name, field) in zip(header, fields) where !field.range.isEmpty {
                texts[name] = field.hasDoubledQuotes ? field.unescaped(bytes) : Array(bytes[field.range])
            }
        } else {
            for member in try JSONLineReader.members(bytes, range) { try Self.read(member, into: &texts) }
        }
        return try Self.line(texts)
    }

    func tokenRange(_ bytes: [UInt8], _ range: Range<Int>, fields: [CSVField]?) -> Range<Int>? { nil }

    private static func read(_ member: JSONLineReader.Member, into texts: inout [String: [UInt8]]) throws(LineFault) {
        let name = String(decoding: member.key.prefix(60), as: UTF8.self)
        guard columns.contains(name) else { throw LineFault(reason: unknown(name)) }
        guard texts[name] == nil else { throw LineFault(reason: "\(name) occurs twice") }
        switch (name, member.value) {
        case (_, .null): return
        case ("value", .number(let digits)) where digits.count <= valueDigitsMax: texts[name] = digits
        case (_, .text(let bytes)) where name != "value": texts[name] = bytes
        default: throw LineFault(reason: "\(name) is not a \(name == "value" ? "number" : "text")")
        }
    }

    static func unknown(_ name: String) -> String {
        // A long name resembles none, and looking would take its time for each line.
        let near = name.utf8.count > 20 ? nil : Suggestion.nearest(to: name, among: columns)
        let advice =
            near.map { "did you mean \(quoted($0))?" }
            ?? "there are \(columns.joined(separator: ", "))"
        return "unknown field \(quoted(name)); \(advice)"
    }

    private static func line(_ texts: [String: [UInt8]]) throws(LineFault) -> FeedbackLine {
        let text = { (name: String) in texts[name].map { String(decoding: $0, as: UTF8.self) } }
        guard let id = text("id") else { throw LineFault(reason: "id is missing; give a UUID that the device created") }
        guard let uuid = UUID(uuidString: id) else {
            throw LineFault(reason: "id is not a UUID; give one that the device created")
        }
        guard let type = text("type") else { throw LineFault(reason: "type is missing; give one, such as opened") }
        guard let kind = FeedbackKind(name: type) else {
            let known = FeedbackKind.allCases.map(\.name).joined(separator: ", ")
            throw LineFault(reason: "unknown type \(quoted(type)); write one of \(known)")
        }
        return FeedbackLine(
            id: halves(uuid), kind: kind, source: try source(kind, texts), name: try name(kind, texts["name"]),
            valueMicros: try value(kind, text("value")), at: try time("at", texts),
            sentAt: try time("sent_at", texts))
    }

    private static func halves(_ uuid: UUID) -> (high: Int64, low: Int64) {
        let id = uuid.uuid
        return (
            half(id.0, id.1, id.2, id.3, id.4, id.5, id.6, id.7),
            half(id.8, id.9, id.10, id.11, id.12, id.13, id.14, id.15)
        )
    }

    private static func half(_ bytes: UInt8...) -> Int64 {
        Int64(bitPattern: bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }

    private static func source(
        _ kind: FeedbackKind, _ texts: [String: [UInt8]]
    ) throws(LineFault) -> FeedbackLine.Source {
        switch (texts["ref"], texts["installation_id"], texts["topic"]) {
        case (let reference?, nil, nil): return .reference(reference)
        case (nil, _, _) where kind.isAboutPush:
            throw LineFault(reason: "\(kind.name) needs ref, from fanfare.r in the push")
        case (nil, let id?, let topic?):
            return .installation(
                try DeviceText.identifier(id[...], "installation_id"), topic: try DeviceText.topic(topic[...]).get())
        case (nil, _, _):
            throw LineFault(reason: "the report names no push and no device; give ref, or installation_id and topic")
        default: throw LineFault(reason: "give ref, or installation_id and topic, but not both")
        }
    }

    private static func name(_ kind: FeedbackKind, _ bytes: [UInt8]?) throws(LineFault) -> String {
        guard kind.isNamed else {
            guard bytes == nil else { throw LineFault(reason: "\(kind.name) has no name") }
            return ""
        }
        guard let bytes, !bytes.isEmpty else { throw LineFault(reason: "\(kind.name) needs a name") }
        guard bytes.count <= nameBytesMax, let name = String(validating: bytes, as: UTF8.self),
            AccountName.isPlain(name)
        else {
            throw LineFault(reason: "name has over \(nameBytesMax) bytes, or invisible characters")
        }
        return name
    }

    private static func value(_ kind: FeedbackKind, _ text: String?) throws(LineFault) -> Int64? {
        guard let text else { return nil }
        guard kind == .converted else { throw LineFault(reason: "\(kind.name) has no value") }
        guard let value = Double(text), value.isFinite, abs(value) <= valueMax else {
            throw LineFault(reason: "value is not a number from -\(Int(valueMax)) to \(Int(valueMax))")
        }
        return Int64((value * micros).rounded())
    }

    private static func time(_ name: String, _ texts: [String: [UInt8]]) throws(LineFault) -> Timestamp? {
        guard let bytes = texts[name] else { return nil }
        guard let time = ISOTime.parse(bytes, bytes.indices) else {
            throw LineFault(reason: "\(name) is not a time such as 2026-11-27T19:30:00Z")
        }
        return time
    }
}

/// Reads the reports of one request: a JSON array, or JSON Lines.
package enum FeedbackBody {
    /// Returns the reports in order, or `nil` if there are more than `max`. In JSON Lines blank lines count.
    package static func lines(
        _ bytes: [UInt8], max: Int
    ) throws(LineFault) -> [NumberedLine<FeedbackLine>]? {
        let isArray = bytes.first { $0 != 0x0A && !isBlank($0) } == UInt8(ascii: "[")
        let ranges = isArray ? try elements(bytes) : records(bytes)
        guard ranges.count <= max else { return nil }
        let decoder = FeedbackLineDecoder(header: nil)
        return ranges.map { number, range in
            NumberedLine(
                number: number,
                value: Result { () throws(LineFault) in
                    try decoder.decode(bytes, range, fields: [])
                })
        }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }

    private static func records(_ bytes: [UInt8]) -> [(Int, Range<Int>)] {
        var found: [(Int, Range<Int>)] = []
        var start = 0
        var number = 0
        while start < bytes.count {
            let end = bytes[start...].firstIndex(of: 0x0A) ?? bytes.count
            number += 1
            if bytes[start..<end].contains(where: { !isBlank($0) }) {
                found.append((number, start..<end))
            }
            start = end + 1
        }
        return found
    }

    /// Returns the ranges of the objects of an array. It looks only at brackets and quotes; the decoder checks the
    /// rest.
    private static func elements(_ bytes: [UInt8]) throws(LineFault) -> [(Int, Range<Int>)] {
        var found: [(Int, Range<Int>)] = []
        var depth = 0
        var start = 0
        var isInText = false
        var index = 0
        var isClosed = false
        while index < bytes.count {
            let byte = bytes[index]
            switch byte {
            case UInt8(ascii: "\\") where isInText: index += 1
            case UInt8(ascii: "\"") where depth >= 2: isInText.toggle()
            case _ where isInText: break
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                if isClosed { throw LineFault(reason: "text follows the JSON array; remove it") }
                depth += 1
                if depth == 2 { start = index }
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                depth -= 1
                if depth == 1 { found.append((found.count + 1, start..<index + 1)) }
                isClosed = depth <= 0
            case UInt8(ascii: ","), 0x20, 0x09, 0x0A, 0x0D: break
            default:
                if depth < 2 {
                    throw LineFault(reason: "an element of the JSON array is not an object; write each report as {...}")
                }
            }
            index += 1
        }
        guard isClosed, depth == 0 else { throw LineFault(reason: "the JSON array is not closed; end it with ]") }
        return found
    }
}

/// Reads a file of reports: CSV with the columns of ``FeedbackLine``, or JSON Lines.
package struct FeedbackFileReader: Sendable {
    private let path: String
    private let rejectsPath: String?

    /// Reads the file at `path`, or standard input for `-`. If `rejectsPath` is `nil`, unusable lines are only counted.
    package init(path: String, rejectsPath: String? = nil) {
        self.path = path
        self.rejectsPath = rejectsPath
    }

    /// Passes each batch of at most `size` lines to `body`, in the order of the file. The body returns the lines that
    /// it refuses, and why. They go to the rejects file like those that cannot be read.
    package func forEachBatch(
        size: Int, isolation: isolated (any _Concurrency.Actor)? = #isolation,
        _ body: ([NumberedLine<FeedbackLine>]) async throws -> [Int: String]
    ) async throws -> ReadCounts {
        try await list().forEachJudgedBatch(size: size, isolation: isolation, body)
    }

    private func list() throws(ImportError) -> ListReader<FeedbackLineDecoder> {
        let (cutter, header) = try LineCutter.opened(path)
        let names = header ?? []
        if let odd = names.first(where: { !FeedbackLineDecoder.columns.contains($0) }) {
            throw .header(["\(cutter.path):\(cutter.line):1: error: \(FeedbackLineDecoder.unknown(odd))"])
        }
        return try ListReader(cutter, FeedbackLineDecoder(header: header), path: path, rejectsPath: rejectsPath)
    }
}
