import Model

/// The first line of a CSV file.
enum CSVHeader {
    /// Of comma, semicolon and tab the one that stands most often in the first line, outside quotes.
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

    /// The names in the first line; the cutter stands behind it afterwards.
    static func names(_ cutter: inout LineCutter) throws(ImportError) -> [String] {
        switch try cutter.next() {
        case .end: throw .header(["\(cutter.path): error: the file is empty; it begins with a line of column names"])
        case .broken(_, let reason): throw .header(["\(cutter.path):\(cutter.line):1: error: header: \(reason)"])
        case .record:
            let bytes = cutter.bytes
            return cutter.fields.map { String(decoding: bytes[$0.range], as: UTF8.self) }
        }
    }

    /// What the names of a device file stand for. Everything wrong with them is reported at once.
    static func columns(_ names: [String], path: String, line: Int) throws(ImportError) -> [DeviceColumn] {
        let findings = Findings(path: path)
        let place = Place(line: line, column: 1)
        var columns: [DeviceColumn] = []
        for name in names {
            guard let column = DeviceColumn(named: name), column != .attributes else {
                let shown = name.utf8.count > 60 ? "a name of \(name.utf8.count) bytes" : quoted(name)
                findings.error("unknown column \(shown)", DeviceColumn.advice(for: name), at: place)
                continue
            }
            if columns.contains(column) {
                findings.error("the column \(quoted(column.name)) stands twice", "remove one of the two", at: place)
            }
            columns.append(column)
        }
        for column in DeviceColumn.required where !columns.contains(column) {
            findings.error(
                "the column \(quoted(column.name)) is missing",
                "the first line names the columns; token, environment and topic are required", at: place)
        }
        guard !findings.hasErrors else { throw .header(findings.diagnostics.map(\.description)) }
        return columns
    }
}
