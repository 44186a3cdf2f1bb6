import Model

/// The result of looking for a record.
enum CSVSplit {
    /// The record without its line end, the start of the next one, and the number of its lines.
    case record(Range<Int>, next: Int, lines: Int)
    /// More bytes are needed to find the record's end.
    case incomplete
    case broken(String)
    /// No more records.
    case nothing
}

/// A field of a CSV record (RFC 4180): its bytes without the surrounding quotes.
struct CSVField {
    var range: Range<Int>
    /// Whether the field contains doubled quotes, each of which stands for one quote.
    var hasDoubledQuotes: Bool

    private static let quote = UInt8(ascii: "\"")
    private static let newline: UInt8 = 0x0A
    private static let carriageReturn: UInt8 = 0x0D

    /// Splits the record that begins at `start`. In a field that does not begin with a quote, a quote is an ordinary
    /// character. Lines end with LF, CR LF or CR.
    static func split(
        _ bytes: [UInt8], from start: Int, isComplete: Bool, delimiter: UInt8, into fields: inout [CSVField]
    ) -> CSVSplit {
        fields.removeAll(keepingCapacity: true)
        let end = bytes.count
        var index = start
        var lines = 1
        while true {
            if index < end, bytes[index] == quote {
                guard let field = quoted(bytes, from: index + 1, lines: &lines) else {
                    return isComplete ? .broken("a quote is opened but not closed") : .incomplete
                }
                index = field.range.upperBound + 1
                if index == end, !isComplete { return .incomplete }
                guard index == end || bytes[index] == delimiter || isLineEnd(bytes[index]) else {
                    return .broken("text after a closing quote")
                }
                fields.append(field.withoutMark(bytes))
            } else {
                let first = index
                while index < end, bytes[index] != delimiter, !isLineEnd(bytes[index]) { index += 1 }
                if index == end, !isComplete { return .incomplete }
                let field = CSVField(range: trimmed(bytes, first..<index), hasDoubledQuotes: false)
                fields.append(field.withoutMark(bytes))
            }
            if index < end, bytes[index] == delimiter {
                index += 1
                continue
            }
            if index == end { return .record(start..<end, next: end, lines: lines) }
            guard bytes[index] == carriageReturn else { return .record(start..<index, next: index + 1, lines: lines) }
            if index + 1 == end, !isComplete { return .incomplete }
            let isPair = index + 1 < end && bytes[index + 1] == newline
            return .record(start..<index, next: index + (isPair ? 2 : 1), lines: lines)
        }
    }

    /// Returns the field without the mark that an export puts in front of a formula.
    private func withoutMark(_ bytes: [UInt8]) -> CSVField {
        CSVField(range: CSVLine.withoutMark(bytes, range), hasDoubledQuotes: hasDoubledQuotes)
    }

    /// Returns the field's bytes with doubled quotes resolved.
    func unescaped(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var index = range.lowerBound
        while index < range.upperBound {
            result.append(bytes[index])
            index += bytes[index] == Self.quote ? 2 : 1
        }
        return result
    }

    /// Reads a quoted field after its opening quote. Returns `nil` if the bytes end before the closing quote.
    private static func quoted(_ bytes: [UInt8], from first: Int, lines: inout Int) -> CSVField? {
        var index = first
        var hasDoubledQuotes = false
        let end = bytes.count
        while index < end {
            let byte = bytes[index]
            if byte == quote {
                guard index + 1 < end, bytes[index + 1] == quote else {
                    return CSVField(range: first..<index, hasDoubledQuotes: hasDoubledQuotes)
                }
                hasDoubledQuotes = true
                index += 2
                continue
            }
            let isPair = byte == carriageReturn && index + 1 < end && bytes[index + 1] == newline
            if isLineEnd(byte), !isPair { lines += 1 }
            index += 1
        }
        return nil
    }

    private static func isLineEnd(_ byte: UInt8) -> Bool { byte == newline || byte == carriageReturn }

    private static func trimmed(_ bytes: [UInt8], _ range: Range<Int>) -> Range<Int> {
        var first = range.lowerBound
        var end = range.upperBound
        while first < end, bytes[first] == 0x20 || bytes[first] == 0x09 { first += 1 }
        while end > first, bytes[end - 1] == 0x20 || bytes[end - 1] == 0x09 { end -= 1 }
        return first..<end
    }
}

/// The first line of a CSV file.
enum CSVHeader {
    /// Returns the most frequent of comma, semicolon and tab in the first line, outside quotes.
    static func delimiter(of line: ArraySlice<UInt8>) -> UInt8 {
        let candidates = [UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "\t")]
        var counts = [0, 0, 0]
        var isQuoted = false
        for byte in line {
            if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
            if !isQuoted, let index = candidates.firstIndex(of: byte) { counts[index] += 1 }
        }
        let most = counts.max() ?? 0
        return candidates[counts.firstIndex(of: most) ?? 0]
    }

    /// Returns the names in the first line, and moves the cutter after it.
    static func names(_ cutter: inout LineCutter) throws(ImportError) -> [String] {
        switch try cutter.next() {
        case .end: throw .header(["\(cutter.path): error: the file is empty; begin it with a line of column names"])
        case .broken(_, let reason): throw .header(["\(cutter.path):\(cutter.line):1: error: header: \(reason)"])
        case .record:
            let bytes = cutter.bytes
            return cutter.fields.map { String(decoding: bytes[$0.range], as: UTF8.self) }
        }
    }

    /// Returns the columns for the names of a device file. All problems of the names are reported together.
    ///
    /// - Parameter leavesOutUnknown: whether an unknown column is left out. Otherwise it is a problem.
    static func columns(
        _ names: [String], path: String, line: Int, leavesOutUnknown: Bool = false
    ) throws(ImportError) -> [DeviceColumn] {
        let collector = DiagnosticCollector(path: path)
        let location = SourceLocation(line: line, column: 1)
        guard !names.contains(where: { DeviceToken(hex: $0) != nil }) else {
            collector.error(
                "the first line is a device, not the column names", "begin the file with token,environment,topic",
                at: location)
            throw .header(collector.diagnostics.map(\.description))
        }
        var columns: [DeviceColumn] = []
        for name in names {
            guard let column = DeviceColumn(named: name) else {
                if leavesOutUnknown {
                    columns.append(.unknown)
                    continue
                }
                let shown = name.utf8.count > 60 ? "with a name of \(name.utf8.count) bytes" : quoted(name)
                collector.error("unknown column \(shown)", DeviceColumn.advice(for: name), at: location)
                continue
            }
            if columns.contains(column) {
                collector.error(
                    "the column \(quoted(column.name)) appears twice", "remove one of the two", at: location)
            }
            columns.append(column)
        }
        for column in DeviceColumn.required where !columns.contains(column) {
            collector.error(
                "the column \(quoted(column.name)) is missing",
                "the first line names the columns; token, environment and topic are required", at: location)
        }
        guard !collector.hasErrors else { throw .header(collector.diagnostics.map(\.description)) }
        return columns
    }
}
